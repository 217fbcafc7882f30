package container

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflow is what counts here of GitHub's workflow files.
type workflow struct {
	Name string
	On   []string
	Jobs map[string]struct {
		RunsOn    string `yaml:"runs-on"`
		Container struct{ Image, Options string }
		Steps     []struct{ Uses, Name, Run string }
	}
}

// nomadJob is what counts here of Nomad's jobs in JSON (developer.hashicorp.com/nomad/api-docs/json-jobs).
type nomadJob struct {
	Job struct {
		TaskGroups []struct {
			Tasks []struct {
				Driver, User string
				Config       struct {
					Command     string
					Args        []string
					SecurityOpt []string `json:"security_opt"`
					CapDrop     []string `json:"cap_drop"`
					Privileged  bool
				}
				Templates []struct{ DestPath, EmbeddedTmpl string }
			}
		}
	}
}

var (
	// securityOpt is the line of GitLab's runner (docs.gitlab.com/runner/configuration/advanced-configuration).
	securityOpt = regexp.MustCompile(`(?m)^\s*security_opt = (\[.*\])$`)
	// agentArgs are those of a Docker agent of Jenkins (jenkins.io/doc/book/pipeline/docker).
	agentArgs = regexp.MustCompile(`(?m)^\s*args '(.*)'$`)
)

// fromCI is the container that another file of the examples makes, put into the flags of docker run that its tool gives.
func fromCI(file string) (recipe, error) {
	text, err := os.ReadFile(filepath.Join(examples, file))
	if err != nil {
		return recipe{}, err
	}
	var flags string
	switch filepath.Base(file) {
	case "workflow.yml":
		var w workflow
		err = yaml.Unmarshal(text, &w)
		flags = w.Jobs["container"].Container.Options
	case "config.toml":
		var options []string
		err = json.Unmarshal(match(securityOpt, text), &options)
		flags = optionFlags("--security-opt", options)
	case "Jenkinsfile":
		flags = string(match(agentArgs, text))
	case "job.json":
		var j nomadJob
		if err = json.Unmarshal(text, &j); err == nil {
			t := j.Job.TaskGroups[0].Tasks[0]
			flags = optionFlags("--security-opt", t.Config.SecurityOpt) + optionFlags("--cap-drop", t.Config.CapDrop) + " --user " + t.User
		}
	default:
		err = fmt.Errorf("not known to the tests")
	}
	if err == nil && flags == "" {
		err = fmt.Errorf("no options for a container")
	}
	if err != nil {
		return recipe{}, fmt.Errorf("%s: %w", file, err)
	}
	return fromFlags(flags)
}

// match is the first group of an expression, empty if it does not match.
func match(expression *regexp.Regexp, text []byte) []byte {
	if m := expression.FindSubmatch(text); m != nil {
		return m[1]
	}
	return nil
}

func optionFlags(flag string, values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(" " + flag + " " + v)
	}
	return b.String()
}
