package container

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"go.yaml.in/yaml/v3"

	"github.com/srt-sandbox/srt/runtime/config"
)

const guide = "../../docs/containers.md"

// exampleFiles are all files beneath examples.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(examples, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, strings.TrimPrefix(path, examples+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestExamplesAreWellFormed reads every example as its tool would, as far as a tool for it is here.
func TestExamplesAreWellFormed(t *testing.T) {
	checks := map[string]func(t *testing.T, file string, text []byte){
		".yaml": func(t *testing.T, file string, _ []byte) {
			list, err := objects(file)
			for _, o := range list {
				_, podErr := o.pod()
				settingsAreValid(t, o.Data["settings.json"])
				if podErr != nil || o.APIVersion == "" || o.Metadata.Name == "" {
					t.Errorf("%s %s: %v", o.Kind, o.Metadata.Name, podErr)
				}
			}
			if err != nil || len(list) == 0 {
				t.Errorf("%d objects, %v", len(list), err)
			}
		},
		".yml": func(t *testing.T, _ string, text []byte) {
			var into map[string]any
			if err := yaml.Unmarshal(text, &into); err != nil || len(into) == 0 {
				t.Errorf("%v, %v", into, err)
			}
		},
		".json": func(t *testing.T, _ string, text []byte) {
			var into any
			if err := json.Unmarshal(text, &into); err != nil {
				t.Error(err)
			}
		},
		".sh": func(t *testing.T, file string, _ []byte) {
			if out, err := exec.Command("sh", "-n", filepath.Join(examples, file)).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		},
		".toml": func(t *testing.T, file string, _ []byte) { readsAsCI(t, file) },
		"": func(t *testing.T, file string, text []byte) {
			switch {
			case filepath.Base(file) == "Jenkinsfile":
				readsAsCI(t, file)
			case file == "Dockerfile":
				for line := range strings.Lines(string(text)) {
					if !instruction.MatchString(line) {
						t.Errorf("%q is no instruction", line)
					}
				}
			case filepath.Dir(file) == "apparmor":
				parsesAsProfile(t, file)
			default:
				t.Error("nothing checks this file")
			}
		},
	}
	for _, file := range exampleFiles(t) {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(examples, file))
			if err != nil {
				t.Fatal(err)
			}
			check := checks[filepath.Ext(file)]
			if check == nil {
				t.Fatal("nothing checks files of this kind")
			}
			check(t, file, text)
			if filepath.Base(file) == "settings.json" {
				settingsAreValid(t, string(text))
			}
		})
	}
	var j nomadJob
	if text, err := os.ReadFile(filepath.Join(examples, "nomad/job.json")); err != nil || json.Unmarshal(text, &j) != nil {
		t.Error(err)
	}
	settingsAreValid(t, j.Job.TaskGroups[0].Tasks[0].Templates[0].EmbeddedTmpl)
}

// instruction is a line of a Dockerfile that the example may have.
var instruction = regexp.MustCompile(`^(#.*|(FROM|RUN|COPY|USER|WORKDIR|ENTRYPOINT) .*)\n$`)

func readsAsCI(t *testing.T, file string) {
	if _, err := fromCI(file); err != nil {
		t.Error(err)
	}
}

// settingsAreValid decodes a settings file of the examples, if there is one.
func settingsAreValid(t *testing.T, text string) {
	t.Helper()
	if text == "" {
		return
	}
	if _, err := config.Decode([]byte(text)); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// parsesAsProfile gives a profile to AppArmor's parser. User namespaces are in the language of version 4 and later.
func parsesAsProfile(t *testing.T, file string) {
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		t.Skip("got no apparmor_parser, want one (package apparmor): the profile is not parsed")
	}
	if _, err := os.Stat("/etc/apparmor.d/abi/4.0"); err != nil && file == "apparmor/srt" {
		t.Skip("got an AppArmor before version 4, want one that knows user namespaces: the profile is not parsed")
	}
	if out, err := exec.Command(parser, "--skip-kernel-load", "--skip-cache", filepath.Join(examples, file)).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestProfileScript: what the script makes of Docker's profile is what the containers of the matrix have.
func TestProfileScript(t *testing.T) {
	defaults, err := json.Marshal(seccomp.DefaultProfile())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "default.json")
	if err := os.WriteFile(path, defaults, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(examples, "srt-seccomp.sh"), path)
	cmd.Stderr = &stderr
	made, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	s := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: defaultCapabilities}}}
	got, err := seccomp.LoadProfile(string(made), s)
	if err != nil {
		t.Fatal(err)
	}
	want, err := recipe{filter: opened}.seccomp(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if last := got.Syscalls[len(got.Syscalls)-1]; !slices.Contains(last.Names, "mount_setattr") {
		t.Errorf("the last rule is %v", last)
	}
}

// TestInstallScript: the DaemonSet's script puts the profile where the kubelet looks, on a node without AppArmor.
func TestInstallScript(t *testing.T) {
	profiles, node := t.TempDir(), t.TempDir()
	for name, from := range map[string]string{"install.sh": "kubernetes/install.sh", "srt-container": "apparmor/srt-container", "srt-seccomp.json": "seccomp-additions.json"} {
		if err := copyProgram(filepath.Join(profiles, name), filepath.Join(examples, from)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", filepath.Join(profiles, "install.sh"))
	cmd.Env = append(os.Environ(), "NODE="+node)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(node, "var/lib/kubelet/seccomp/srt-seccomp.json")); err != nil {
		t.Error(err)
	}
}

// engineRun is a command of the guide that starts a container.
var engineRun = regexp.MustCompile(`(?m)^ *(docker|podman) run ((?:[^\\\n]|\\\n)*)$`)

// TestGuide: the guide names every example and no file that is not there, and the flags of every container that it starts are
// those of a row of the matrix.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range exampleFiles(t) {
		if !bytes.Contains(text, []byte(file)) {
			t.Errorf("%s is not in the guide", file)
		}
	}
	for _, link := range regexp.MustCompile(`\]\((\.\./examples/[^)#]*|[a-z]+\.md)[^)]*\)`).FindAllSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(guide), string(link[1]))); err != nil {
			t.Error(err)
		}
	}
	runs := engineRun.FindAllSubmatch(text, -1)
	if len(runs) == 0 {
		t.Error("the guide starts no container")
	}
	for _, run := range runs {
		flags, _, _ := strings.Cut(strings.ReplaceAll(string(run[2]), "\\\n", " "), "IMAGE")
		want, err := fromFlags(flags)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		if string(run[1]) == "podman" {
			want.asPodman()
		}
		if !slices.ContainsFunc(shapes, func(s shape) bool {
			got, err := s.recipe()
			got.ids = want.ids // of docker run and podman run alike
			return err == nil && cmp.Equal(got, want, cmp.AllowUnexported(recipe{}))
		}) {
			t.Errorf("no row of the matrix is %s", flags)
		}
	}
}
