package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJob runs the job of the examples as Kubernetes does: its ConfigMap as files, its token in place, its very command.
func TestJob(t *testing.T) {
	list, err := objects("kubernetes/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var pod *podSpec
	files := map[string]string{"/run/secrets/kubernetes.io/serviceaccount/token": "the token"}
	for _, o := range list {
		if p, err := o.pod(); err != nil {
			t.Fatal(err)
		} else if p != nil {
			pod = p
		}
		for name, text := range o.Data { // as the kubelet lays out a ConfigMap
			files["/etc/srt/..2026_12_01/"+name] = text
			files["/etc/srt/"+name] = "-> ..data/" + name
		}
	}
	files["/etc/srt/..data"] = "-> ..2026_12_01"
	r, err := pod.recipe()
	if err != nil {
		t.Fatal(err)
	}
	r.files = files
	as := account{*r.uid, *pod.SecurityContext.RunAsGroup}
	for engine := range engines {
		c := newContainer(t, engine, r, as)
		o := c.run(t, pod.Containers[0].Command, nil)
		if o.status != 42 || strings.Contains(string(o.stdout), "the token") {
			t.Errorf("%s: the job ended with %d, not 42: %s%s", engine, o.status, o.stdout, o.stderr)
		}
		if text, err := os.ReadFile(filepath.Join(c.home, "artifact")); err != nil || string(text) != "built\n" {
			t.Errorf("%s: its artifact is %q, %v", engine, text, err)
		}
		command := pod.Containers[0].Command
		if o := newContainer(t, engine, r, as).run(t, command[len(command)-2:], nil); o.status != 3 {
			t.Errorf("%s: without srt the job ends with %d, not 3, so that this test shows nothing", engine, o.status)
		}
	}
}
