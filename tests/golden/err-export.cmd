# status: 1
# Nothing is measured before the first step.
export trace run.json
