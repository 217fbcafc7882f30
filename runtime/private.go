package runtime

import "github.com/srt-sandbox/srt/runtime/config"

// What an embedder keeps from its commands beside the settings: descriptors, files and later changes of its own.

// keep is what the options of this file say.
type keep struct {
	privateFiles   []string
	nullDescriptor int
	fixedLaunch    bool
	limitCores     bool
}

// WithPrivateFiles names files of the caller's own by their absolute paths: a FIFO over which it is told what to do, for
// example. No command can open them, neither to read nor to write, whatever the settings say, filesystem.disabled
// included. One that does not exist at a launch cannot be made by its command, but with filesystem.disabled. One that has a
// second name (a hard link) is an error of the launch, since a command could open it by that.
func WithPrivateFiles(paths ...string) Option {
	return func(o *options) { o.privateFiles = append(o.privateFiles, paths...) }
}

// WithNullDescriptor has every command find the null device, opened for reading, at descriptor n, 3 or more: it stands in for
// a descriptor of the caller's that a command would look for and must not have (CLI-30). 0 is for none. Linux only.
func WithNullDescriptor(n int) Option { return func(o *options) { o.nullDescriptor = n } }

// WithFixedLaunch has every command launched under the configuration that the session began with: an update then counts
// for what is live alone (LIB-21), and Update names the settings for launches among those that are not (CLI-26, CLI-32).
func WithFixedLaunch() Option { return func(o *options) { o.fixedLaunch = true } }

// WithoutCoreDumps keeps this process from dumping core from the first launch on under settings with the section credentials,
// until it ends: a core file has all that a process knows, the environment that credentials are taken from included (CRED-35).
// It is for programs whose process is the sandbox's host and nothing else, since it lowers a limit of the process
// (RLIMIT_CORE), which what else it starts inherits; commands of the sandbox have the limit as it was. Linux only.
func WithoutCoreDumps() Option { return func(o *options) { o.limitCores = true } }

// notLive are the settings in which an update differs from what the session began with and which it does not change.
func (k *keep) notLive(begun, updated *config.Config) (paths []string) {
	for _, d := range config.Differences(begun, updated) {
		if d.Effect == config.Fixed || d.Effect == config.NextLaunch && k.fixedLaunch {
			paths = append(paths, d.Path)
		}
	}
	return paths
}
