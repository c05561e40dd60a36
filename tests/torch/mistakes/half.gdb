# float16 holds no more than 65504.
watch TO on all
continue
why
delete
kill
