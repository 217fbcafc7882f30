package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// planJudge answers questions about paths from the plan of a launch that does not take place.
type planJudge struct {
	launch    *launch
	judge     *fsview.Judge
	cwd, home string
	// sockets are the entries of network.allowUnixSockets with their locations, rules what the broker would go by.
	sockets []policy.PathRule
	rules   *socketRules
}

// pathJudge prepares the command as for a launch. The caller releases what it gets.
func (c *Cmd) pathJudge() (pathJudge, error) {
	if err := c.configure(); err != nil {
		return nil, err
	}
	h, err := readIdentity()
	if err != nil {
		return nil, err
	}
	how, _, err := c.dryAttempt()
	if err != nil {
		return nil, err
	}
	l, err := c.prepare(h, how)
	if err != nil {
		return nil, err
	}
	j := &planJudge{launch: l, judge: fsview.NewJudge(l.plan)}
	base := c.Env
	if base == nil {
		base = os.Environ()
	}
	if j.cwd, j.home, err = surroundings(c.Dir, base); err != nil {
		return nil, err
	}
	if j.sockets, err = policy.ResolveSockets(l.cfg.Network.AllowUnixSockets, policy.PathInput{Cwd: j.cwd, Home: j.home}); err != nil {
		return nil, err
	}
	for i := range j.sockets {
		j.sockets[i].Path = withoutLinks(j.sockets[i].Path)
	}
	return j, nil
}

func (j *planJudge) release() { _ = j.rules.release() } // nothing was written to what it held

func (j *planJudge) why(v *Verdict) error {
	p, err := j.absolute(v.Target)
	if err != nil {
		return err
	}
	if v.Kind == QueryUnix {
		j.whyUnix(v, p)
		return nil
	}
	at, err := j.follow(p, v.Kind != QueryRemove)
	if err != nil {
		return fmt.Errorf("%s %q: %w", v.Kind, v.Target, err)
	}
	v.Path = at
	_, missing := os.Lstat(at)
	access := fsview.AccessRead
	switch {
	case v.Kind == QueryRemove:
		access = fsview.AccessRemove
	case v.Kind == QueryWrite && missing != nil:
		access = fsview.AccessCreate
	case v.Kind == QueryWrite:
		access = fsview.AccessWrite
	}
	v.Access = access.String()
	found := j.judge.Judge(at, access)
	v.take(&found)
	if found.Denied {
		v.modes = refusedByModes(at, "", access)
	}
	if v.Allowed {
		j.allowed(v, access, missing)
	}
	return nil
}

// take fills in what the plan says.
func (v *Verdict) take(found *fsview.Judgement) {
	v.Allowed, v.Rule, v.Entry, v.Reason = !found.Denied, found.Rule, found.Entry, found.Reason
	if v.Allowed && found.Substitute {
		v.Reason = "the command sees a file of the sandbox's own there"
	}
}

// allowed adds which entry grants, and what else may refuse it.
func (j *planJudge) allowed(v *Verdict, access fsview.Access, missing error) {
	if access != fsview.AccessRead {
		v.Rule, v.Entry = j.judge.Grant(v.Path)
	}
	if v.Reason != "" {
		return
	}
	ask, what := uint32(unix.R_OK), v.Path
	switch {
	case access == fsview.AccessCreate, access == fsview.AccessRemove && missing == nil:
		ask, what = unix.W_OK|unix.X_OK, filepath.Dir(v.Path)
	case missing != nil:
		v.Notes = append(v.Notes, "nothing is there now")
		return
	case access == fsview.AccessWrite:
		ask = unix.W_OK
	}
	switch err := unix.Faccessat(unix.AT_FDCWD, what, ask, unix.AT_EACCESS); {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		v.Notes = append(v.Notes, fmt.Sprintf("without a sandbox it would be refused as well: %v", err))
	case errors.Is(err, unix.ENOENT):
		v.Notes = append(v.Notes, "the directory it would be in is not there now")
	}
}

// absolute is a path as a person writes it, taken from where a command would start.
func (j *planJudge) absolute(text string) (string, error) {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		return "", fmt.Errorf("%q holds a NUL byte, which no path does", text)
	case text == "~" || strings.HasPrefix(text, "~/"):
		if j.home == "" {
			return "", fmt.Errorf("%q names nothing, because HOME is empty; write the path in full", text)
		}
		return j.home + text[1:], nil
	case !filepath.IsAbs(text):
		return j.launch.plan.Dir + "/" + text, nil
	}
	return text, nil
}

// maxLinks is how many links the kernel follows on one path (path_resolution(7)).
const maxLinks = 40

// follow resolves a path as a command in the sandbox would: links are followed as far as they show there. What lies beneath
// something hidden, in /proc or in /dev stays as it is. ".." is taken after links, as the kernel does.
// A link as the last component is followed only with last.
func (j *planJudge) follow(p string, last bool) (string, error) {
	at, rest, links := "/", strings.Split(p, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, name)
		if !j.shows(at) || !last && len(rest) == 0 {
			continue
		}
		target, err := os.Readlink(at)
		if err != nil {
			continue // no link, or nothing there
		}
		if links++; links > maxLinks {
			return "", unix.ELOOP
		}
		rest = append(strings.Split(target, "/"), rest...)
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = "/"
		}
	}
	return at, nil
}

// shows tells whether the sandbox shows what the host has at a path.
func (j *planJudge) shows(at string) bool {
	for _, own := range [...]string{"/proc", "/dev"} {
		if policy.Covers(own, at) {
			return false
		}
	}
	found := j.judge.Judge(at, fsview.AccessRead)
	return !found.Substitute && !j.judge.Shown(at)
}

// whyUnix answers a question about a socket of the host: by the entries of network.allowUnixSockets as the broker does, once
// the view of the files lets it be found (NET-80, NET-81).
func (j *planJudge) whyUnix(v *Verdict, p string) {
	l := j.launch
	at, err := j.follow(p, true)
	if err != nil {
		at = filepath.Clean(p)
	}
	v.Path = at
	v.Notes = append(v.Notes, "a socket that the command binds itself can be connected to wherever it is")
	if found := j.judge.Judge(at, fsview.AccessRead); found.Denied {
		v.take(&found)
		return
	}
	switch rule := policy.SocketRule(j.sockets, at); {
	case l.cfg.Network.AllowAllUnixSockets:
		v.Allowed, v.Rule = true, policy.RuleAllUnixSockets
	case !l.captured():
		v.Rule = policy.RuleAllUnixSockets
		v.Reason = "without a broker every Unix socket is refused: " + l.uncaptured.Error()
		v.Notes = nil
	case notSocket(at):
		v.Rule, v.Reason = policy.RuleUnixSockets, violation.ReasonNoSocket
	case rule == nil:
		v.Rule, v.Reason = policy.RuleUnixSockets, "no entry names that socket of the host"
	default:
		v.Rule, v.Entry = rule.Key, rule.Entry
		j.whyListed(v, at)
	}
}

// notSocket tells whether there is something that is no socket.
func notSocket(at string) bool {
	var st unix.Stat_t
	return unix.Lstat(at, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFSOCK
}

// whyListed judges a socket that is listed: where the command may write, only what lay there when it started counts.
func (j *planJudge) whyListed(v *Verdict, at string) {
	if j.rules == nil {
		j.rules = newSocketRules(j.launch.sockets, j.launch.plan, func(line string) { v.Notes = append(v.Notes, line) })
	}
	var st unix.Stat_t
	err := unix.Lstat(at, &st)
	switch {
	case err != nil:
		v.Allowed = !j.rules.writable.around(at)
		v.Reason = "nothing is there now"
		if !v.Allowed {
			v.Reason += ", and in a place that the command may write only sockets count that are there when it starts"
		}
	case !j.rules.allowed(at, st.Dev, st.Ino):
		v.Reason = "it lies in a place that the command may write, with more sockets than can be told apart there"
	case st.Nlink > 1:
		v.Reason = "its file has more than one name, and the others may not be allowed"
	default:
		v.Allowed = true
	}
}
