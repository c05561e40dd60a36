watch TO on all
