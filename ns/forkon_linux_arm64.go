package ns

// stackArgument is where forkOn has the argument of the first function, from the stack pointer on.
const stackArgument = 8
