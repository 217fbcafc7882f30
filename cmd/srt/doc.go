// Command srt runs any command inside a boundary that one settings file states.
//
// What belongs here: the command line. One file per subcommand parses its words, calls package runtime and prints.
//
// What does not belong here: policy (runtime/policy), launching (runtime, ns) and the meaning of a settings key
// (runtime/config). An embedder of package runtime must be able to do everything that this command does.
package main
