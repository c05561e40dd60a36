rank check
