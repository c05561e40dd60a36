catch exception now
