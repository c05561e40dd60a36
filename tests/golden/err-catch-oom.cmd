catch oom sideways
