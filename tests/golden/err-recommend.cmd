recommend perhaps
