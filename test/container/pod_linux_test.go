package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// The parts of Kubernetes' objects that the examples use (kubernetes.io/docs/reference/kubernetes-api). What is not here is an
// error, so that a mistyped key cannot stand in an example.
type (
	object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       yaml.Node
		Data       map[string]string
	}
	metadata struct {
		Name, Namespace string
		Labels          map[string]string
		Annotations     map[string]string
	}
	workload struct {
		Replicas                *int
		Selector                yaml.Node
		BackoffLimit            *int      `yaml:"backoffLimit"`
		TTLSecondsAfterFinished *int      `yaml:"ttlSecondsAfterFinished"`
		UpdateStrategy          yaml.Node `yaml:"updateStrategy"`
		Template                struct {
			Metadata metadata
			Spec     podSpec
		}
	}
	podSpec struct {
		HostUsers                    *bool             `yaml:"hostUsers"`
		HostPID                      bool              `yaml:"hostPID"`
		RestartPolicy                string            `yaml:"restartPolicy"`
		AutomountServiceAccountToken *bool             `yaml:"automountServiceAccountToken"`
		ServiceAccountName           string            `yaml:"serviceAccountName"`
		NodeSelector                 map[string]string `yaml:"nodeSelector"`
		Tolerations                  yaml.Node
		SecurityContext              securityContext `yaml:"securityContext"`
		InitContainers               []podContainer  `yaml:"initContainers"`
		Containers                   []podContainer
		Volumes                      []yaml.Node
	}
	podContainer struct {
		Name, Image     string
		Command, Args   []string
		WorkingDir      string `yaml:"workingDir"`
		Env, Resources  yaml.Node
		SecurityContext securityContext `yaml:"securityContext"`
		VolumeMounts    []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	// securityContext is that of a pod and of a container in one; the container's parts count where it says something.
	securityContext struct {
		RunAsNonRoot             *bool `yaml:"runAsNonRoot"`
		RunAsUser                *int  `yaml:"runAsUser"`
		RunAsGroup               *int  `yaml:"runAsGroup"`
		FSGroup                  *int  `yaml:"fsGroup"`
		Privileged               bool
		AllowPrivilegeEscalation *bool  `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool   `yaml:"readOnlyRootFilesystem"`
		ProcMount                string `yaml:"procMount"`
		Capabilities             struct{ Add, Drop []string }
		SeccompProfile           *profile `yaml:"seccompProfile"`
		AppArmorProfile          *profile `yaml:"appArmorProfile"`
	}
	profile struct {
		Type             string
		LocalhostProfile string `yaml:"localhostProfile"`
	}
)

// objects are those of a manifest beneath examples.
func objects(file string) ([]object, error) {
	text, err := os.ReadFile(filepath.Join(examples, file))
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var list []object
	for {
		var o object
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, o)
	}
}

// strictly decodes a node with its fields known, which yaml.Node.Decode does not.
func strictly(node *yaml.Node, into any) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(into)
}

// pod is the pod of an object, if it has one.
func (o object) pod() (*podSpec, error) {
	var err error
	var w workload
	switch o.Kind {
	case "Pod":
		err = strictly(&o.Spec, &w.Template.Spec)
	case "Deployment", "DaemonSet", "Job":
		err = strictly(&o.Spec, &w)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
	}
	return &w.Template.Spec, nil
}

// fromManifest is the container of the only pod of a manifest.
func fromManifest(file string) (recipe, error) {
	list, err := objects(file)
	if err != nil {
		return recipe{}, err
	}
	for _, o := range list {
		if pod, err := o.pod(); err != nil {
			return recipe{}, err
		} else if pod != nil {
			return pod.recipe()
		}
	}
	return recipe{}, fmt.Errorf("%s has no pod", file)
}

// recipe is the first container of a pod, as the kubelet and containerd make it without seccompDefault.
func (p *podSpec) recipe() (recipe, error) {
	c := p.Containers[0].SecurityContext
	r := recipe{filter: unfiltered, tmpfs: map[string][]string{}, added: c.Capabilities.Add, dropped: c.Capabilities.Drop,
		readOnlyRoot: c.ReadOnlyRootFilesystem, unmasked: c.ProcMount == "Unmasked", uid: p.SecurityContext.RunAsUser}
	if p.HostUsers != nil && !*p.HostUsers {
		r.ids = rangeIDs
	} else if r.unmasked {
		return r, errors.New("procMount: Unmasked needs hostUsers: false")
	}
	for _, s := range []securityContext{p.SecurityContext, c} {
		if s.RunAsUser != nil {
			r.uid = s.RunAsUser
		}
		if s.RunAsNonRoot != nil {
			r.nonRoot = *s.RunAsNonRoot
		}
		if s.SeccompProfile != nil {
			filter, ok := map[profile]filter{{Type: "Unconfined"}: unfiltered, {Type: "RuntimeDefault"}: byDefault,
				{"Localhost", "srt-seccomp.json"}: opened}[*s.SeccompProfile]
			if !ok {
				return r, fmt.Errorf("seccompProfile %v: not known to the tests", *s.SeccompProfile)
			}
			r.filter = filter
		}
	}
	r.noNewPrivs = c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation
	for _, m := range p.Containers[0].VolumeMounts {
		if m.MountPath == "/tmp" {
			r.tmpfs["/tmp"] = nil
		}
	}
	if c.Privileged {
		r.privileged()
	}
	if r.nonRoot && (r.uid == nil || *r.uid == 0) {
		return r, errors.New("runAsNonRoot without the number of a user: the image would have to name one")
	}
	return r, nil
}
