package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestDifferencesKnowEverySetting_LIB23: a change of any field of a configuration, whatever it is, shows up under its name.
// A field that is added to the schema and to no table fails here.
func TestDifferencesKnowEverySetting_LIB23(t *testing.T) {
	seen := 0
	eachField(reflect.TypeFor[Config](), "", nil, func(path string, index [][]int) {
		first, second := &Config{}, &Config{}
		for _, c := range []*Config{first, second} {
			c.Credentials, c.Network.TLSTerminate = &Credentials{}, &TLSTerminate{}
		}
		v := reflect.ValueOf(second).Elem()
		for _, i := range index {
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			v = v.FieldByIndex(i)
		}
		change(v)
		found := slices.ContainsFunc(Differences(first, second), func(d Difference) bool { return strings.EqualFold(d.Path, path) })
		if path == "Windows.WFPSublayerGUID" { // the same setting under its old name
			found = Differences(first, second)[0].Path == "windows.sublayerGuid"
		}
		if !found {
			t.Errorf("%s is in no table: %v", path, Differences(first, second))
		}
		seen++
	})
	if rows := len(settingTable()); seen < rows-1 { // presence of network.tlsTerminate is a row of its own
		t.Errorf("%d fields, and %d rows", seen, rows)
	}
}

// eachField visits every setting of a section by its name, and the sections in it.
func eachField(section reflect.Type, prefix string, at [][]int, visit func(path string, index [][]int)) {
	for f := range section.Fields() {
		if !f.IsExported() {
			continue
		}
		index := append(slices.Clone(at), f.Index)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch inner {
		case reflect.TypeFor[Network](), reflect.TypeFor[Filesystem](), reflect.TypeFor[Credentials](), reflect.TypeFor[Git](),
			reflect.TypeFor[Windows](), reflect.TypeFor[TLSTerminate]():
			eachField(inner, prefix+f.Name+".", index, visit)
		default:
			visit(prefix+f.Name, index)
		}
	}
}

// change gives a value another one.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(7)
	case reflect.String:
		v.SetString("other")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		change(v.Field(0))
	default:
		panic("a setting of kind " + v.Kind().String())
	}
}

// TestDifferences_LIB21_LIB22_LIB23 states for each kind of setting when a change counts.
func TestDifferences_LIB21_LIB22_LIB23(t *testing.T) {
	withTLS, withCredentials := &Config{Network: Network{TLSTerminate: &TLSTerminate{}}}, &Config{Credentials: &Credentials{}}
	for _, c := range []struct {
		name   string
		goos   string
		first  *Config
		change func(*Config)
		want   []Difference
	}{
		{"nothing", "linux", &Config{}, func(*Config) {}, nil},
		{"an empty list is none", "linux", &Config{}, func(c *Config) {
			c.Network.AllowedDomains, c.Filesystem.DenyRead, c.IgnoreViolations = []string{}, []PathEntry{}, map[string][]string{}
		}, nil},
		{"a default that is written out", "linux", &Config{}, func(c *Config) {
			c.MandatoryDenySearchDepth, c.Network.AmbiguousRequestTarget = 3, TargetRefuse
		}, nil},
		{"LIB-21 hosts", "linux", &Config{}, func(c *Config) { c.Network.DeniedDomains = []string{"x"} }, []Difference{{"network.deniedDomains", Live}}},
		{"LIB-21 ignored violations", "linux", &Config{}, func(c *Config) { c.IgnoreViolations = map[string][]string{"*": {"x"}} },
			[]Difference{{"ignoreViolations", Live}}},
		{"LIB-22 files", "linux", &Config{}, func(c *Config) { c.Filesystem.DenyRead = pathEntries("x") }, []Difference{{"filesystem.denyRead", NextLaunch}}},
		{"LIB-23 files on Windows", "windows", &Config{}, func(c *Config) { c.Filesystem.DenyRead = pathEntries("x") }, []Difference{{"filesystem.denyRead", Fixed}}},
		{"case 21 the parent proxy", "linux", &Config{}, func(c *Config) { c.Network.ParentProxy.HTTP = "x:1" }, []Difference{{"network.parentProxy", Fixed}}},
		{"an empty noProxy is not none", "linux", &Config{}, func(c *Config) { c.Network.ParentProxy.NoProxy = new(string) }, []Difference{{"network.parentProxy", Fixed}}},
		{"LIB-23 termination", "linux", &Config{}, func(c *Config) { c.Network.TLSTerminate = &TLSTerminate{MaxTunnels: 3} },
			[]Difference{{"network.tlsTerminate", Fixed}, {"network.tlsTerminate.maxTunnels", Fixed}}},
		{"LIB-21 limits, when it terminates", "linux", withTLS, func(c *Config) {
			c.Network.TLSTerminate = &TLSTerminate{MaxTunnels: 3, CACertPath: "a", CAKeyPath: "b"}
		},
			[]Difference{{"network.tlsTerminate.caCertPath", Fixed}, {"network.tlsTerminate.caKeyPath", Fixed}, {"network.tlsTerminate.maxTunnels", Live}}},
		{"LIB-21 sigv4 without credentials", "linux", &Config{}, func(c *Config) { c.Credentials = &Credentials{SigV4: SigV4{Streaming: SigV4Passthrough}} },
			[]Difference{{"credentials.sigv4", Fixed}}},
		{"LIB-21 sigv4 with credentials", "linux", withCredentials, func(c *Config) { c.Credentials = &Credentials{SigV4: SigV4{Streaming: SigV4Passthrough}} },
			[]Difference{{"credentials.sigv4", Live}}},
		{"the loopback mode", "windows", &Config{}, func(c *Config) { c.Network.AllowLocalBinding = true }, []Difference{{"network.allowLocalBinding", Fixed}}},
		{"the loopback mode elsewhere", "linux", &Config{}, func(c *Config) { c.Network.AllowLocalBinding = true }, []Difference{{"network.allowLocalBinding", Ineffective}}},
	} {
		second := c.first.Clone()
		c.change(second)
		if got := differencesFor(c.goos, c.first, second); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	want := []Difference{{"network.allowedDomains", Live}, {"network.httpProxyPort", Fixed}}
	if got := Differences(&Config{}, &Config{Network: Network{HTTPProxyPort: 1, AllowedDomains: []string{"x"}}}); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
