package fsview

import "strconv"

// Between judges a rename, or a hard link, from one path to another where neither is denied by itself: what one entry grants
// is a mount of its own, and the kernel lets neither lead from one mount to another (EXDEV), though both show the same file
// system. The rule is that of the mount at which the deeper of the two places begins. Both paths as for Judge.
func (j *Judge) Between(from, to string) Judgement {
	one, two := j.mount(from), j.mount(to)
	if one == two {
		return Judgement{}
	}
	deeper := two
	if two == nil || one != nil && len(one.Path) > len(two.Path) {
		deeper = one
	}
	v := j.denied(deeper.Why, to)
	v.Reason = "a rename or link does not lead into or out of " + strconv.Quote(deeper.Path) + ", which is a mount of its own"
	return v
}

// mount is the step whose mount holds the name at a path, nil for that of the root.
func (j *Judge) mount(path string) *Step {
	for dir := above(path); dir != ""; dir = above(dir) {
		if s := j.steps[dir]; s != nil {
			return s
		}
		if s := j.pins[dir]; s != nil {
			return s
		}
	}
	return j.steps["/"]
}
