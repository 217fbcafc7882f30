package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// manyUnits adds 40 sources to the C project, for a build that makes objects at the same time.
const manyUnits = `
for i in $(seq 40); do printf '#include "tally.h"\nint unit_%d(void) { return %d; }\n' $i $i >src/unit$i.c; done
sed -i 's|^OBJ .*|& $(patsubst src/%.c,build/%.o,$(wildcard src/unit*.c))|' Makefile
`

// goModule is made of packages of srt that need nothing but the standard library.
func goModule(s *stage.Stage) {
	s.Copy("../../seccomp/internal/rules", "rules")
	s.Copy("../../proxy/internal/httphead", "httphead")
	s.File("go.mod", "module example.com/parts\n\ngo 1.26\n")
	seed, err := goCacheSeed()
	s.Must(err)
	if r := s.Outside("cp -r " + seed + " $TMPDIR/gocache"); r.Status != 0 {
		s.T.Fatal(r)
	}
}

// goEnv is the environment of the go command.
var goEnv = []string{"GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "CGO_ENABLED=0", "GO111MODULE=on"}

// goCacheSeed is a build cache that holds the standard library as the module needs it. Compiling that takes most of a
// minute; every run gets a copy.
var goCacheSeed = sync.OnceValues(func() (string, error) {
	tool, err := stage.GoTool()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "srt-test-gocache-")
	if err != nil {
		return "", err
	}
	seeds = dir
	cmd := exec.Command(tool, "test", "-count=1", "./seccomp/internal/rules", "./proxy/internal/httphead")
	cmd.Dir, cmd.Env = "../..", append(append(os.Environ(), goEnv...), "GOCACHE="+dir+"/gocache", "GOFLAGS="+os.Getenv("GOFLAGS"))
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%q: %w\n%s", cmd.Args, err, text)
	}
	return filepath.Join(dir, "gocache"), exec.Command("chmod", "-R", "a+rX", dir).Run()
})

// seeds is removed when the tests have ended.
var seeds string

const goExports = `export PATH="$GOBINDIR:$PATH" GOCACHE="$TMPDIR/gocache" GOPATH="$TMPDIR/gopath"
`

func TestBuilds(t *testing.T) {
	t.Cleanup(func() { _ = os.RemoveAll(seeds) })
	cProject := func(s *stage.Stage) { s.Copy("../testdata/cproject", ".") }
	compareAll(t, []use{
		{name: "make -j of a C project", tools: []string{"gcc", "make"}, setup: cProject, prepare: manyUnits,
			script: `
make -s -j4 all check; make; touch src/tally.c; make -j2; make -j4 clean; make -s -j4 CFLAGS='-O2 -save-temps=obj'; printf 'a b a' | build/tally`},
		{name: "go test ./... of a module", heavy: true, tools: []string{"go"}, setup: goModule,
			env: func(s *stage.Stage) []string {
				tool, err := stage.GoTool()
				s.Must(err)
				return append(goEnv, "GOBINDIR="+filepath.Dir(tool))
			},
			varying: []string{`\d+\.\d+s`, `\(cached\)`}, script: goExports + `
go test ./...; go vet ./...; go build ./...; go test -c -o parts.test ./rules; ./parts.test -test.count=1; go test -coverprofile=cover.out ./rules; go list ./...; gofmt -l .`,
			view: stage.View{Varying: []string{"parts.test"}}},
		{name: "npm install and npm test", heavy: true, tools: []string{"node", "npm"}, env: npmEnv, setup: npmProject, view: stage.View{Without: []string{".npm"}},
			varying: []string{`\b\d+(\.\d+)?m?s\b`, `duration_ms:? [\d.]+`, `npm notice.*\n`}, script: `
npm install --foreground-scripts; npm test; node_modules/.bin/srt-sample there; npm ls --all; npm run build; npm install --offline; npm ci --offline --foreground-scripts; npm test; npm pack --silent; npm uninstall tarred; npm prune`},
		{name: "pytest of a small project", tools: []string{"python3", "pytest-3"}, setup: pythonProject,
			varying: []string{`in \d+\.\d+s`}, view: stage.View{Varying: []string{"*.pyc", "*/*.pyc", "__pycache__/*", "*/__pycache__/*", "base/*/a.zip"}}, script: `
pytest-3 -q -p no:randomly; pytest-3 -q --lf --basetemp=base; pytest-3 -q --junitxml=report/x.xml >/dev/null; rm report/x.xml; python3 -m compileall -q words; python3 -c 'import words; print(words.count("a b a"))'
python3 -m venv --without-pip env; env/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; rm -r env; ls -A`},
		{name: "apt-get download", tools: []string{"apt-get", "dpkg-deb"}, prepare: debRepository, script: aptScript,
			view: stage.View{Without: []string{"state/lists", "state/cache"}}, varying: []string{`(?m)^(Get|Hit|Ign|Fetched|Reading|Building).*\n`, `\x1b\[\S*`, `\r`}},
	})
}

// npmEnv keeps npm to the project.
func npmEnv(s *stage.Stage) []string {
	return []string{"npm_config_cache=" + s.Abs(".npm"), "npm_config_audit=false", "npm_config_fund=false",
		"npm_config_update_notifier=false", "npm_config_registry=http://127.0.0.1:1/", "OUTSIDE=/dev/full"}
}

// npmProject depends on a directory and on a tarball, both of its own: there is no registry.
func npmProject(s *stage.Stage) {
	s.Copy("../testdata/npmpackage", "vendor/srt-sample")
	s.Copy("../testdata/npmpackage", "packing/package")
	s.File("package.json", `{"name": "consumer", "version": "1.0.0", "private": true, "files": ["dist"],
"dependencies": {"srt-sample": "file:vendor/srt-sample", "tarred": "file:tarred-1.0.0.tgz"},
"scripts": {"test": "node --test test", "build": "node build.js", "prepare": "node -e \"require('fs').writeFileSync('prepared', 'yes')\""}}`)
	s.File("build.js", `const fs = require("fs"); fs.mkdirSync("dist/secrets", {recursive: true});
for (let i = 0; i < 50; i++) { fs.writeFileSync("dist/" + i + ".js", require("srt-sample")(i)); }
fs.renameSync("dist/0.js", "dist/zero.js"); fs.copyFileSync("dist/1.js", "dist/secrets/prod.env"); fs.symlinkSync("1.js", "dist/one.js"); fs.rmSync("dist/2.js");`)
	s.File("test/sample.test.js", `const test = require("node:test"), assert = require("assert"), fs = require("fs"), os = require("os"), path = require("path");
test("dependencies", () => { assert.equal(require("srt-sample")("you"), "hello you"); assert.equal(require("tarred")("you"), "hello you"); });
test("files", async () => { const d = fs.mkdtempSync(path.join(os.tmpdir(), "t-"));
  await Promise.all([...Array(20).keys()].map((i) => fs.promises.writeFile(path.join(d, "f" + i), "x", {flag: "wx"}))); fs.rmSync(d, {recursive: true}); });`)
	if r := s.Outside(`cd packing/package; sed -i 's/"srt-sample",/"tarred",/' package.json; cd ..; tar --sort=name --mtime=@1700000000 --owner=0 --group=0 -czf ../tarred-1.0.0.tgz package; cd ..; rm -r packing`); r.Status != 0 {
		s.T.Fatal(r)
	}
}

func pythonProject(s *stage.Stage) {
	s.File("words/__init__.py", "def count(text):\n    found = {}\n    for w in text.split():\n        found[w] = found.get(w, 0) + 1\n    return found\n")
	s.File("tests/test_words.py", `import os, shutil, sqlite3, subprocess, tempfile
import pytest, words

@pytest.mark.parametrize("text,want", [("a b a", {"a": 2, "b": 1}), ("", {})])
def test_count(text, want):
    assert words.count(text) == want

def test_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "prod.env").write_text("x")
    with tempfile.TemporaryFile() as f, tempfile.NamedTemporaryFile(dir=".") as g:
        f.write(b"x"); g.write(b"y")
    os.link("secrets/prod.env", "hard"); os.symlink("hard", "soft"); os.replace("hard", "renamed"); os.mkfifo("fifo")
    shutil.copytree("secrets", "copied"); shutil.make_archive("a", "zip", "copied"); shutil.rmtree("copied")
    with pytest.raises(FileExistsError):
        os.mkdir("secrets")
    with pytest.raises(FileNotFoundError):
        open("missing/x", "w")
    d = os.open(".", os.O_RDONLY)
    fd = os.open("rel", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=d)
    assert os.fstat(fd).st_mode & 0o777 == 0o600

def test_programs(tmp_path):
    assert subprocess.run("umask 027; echo x >f; stat -c %a f", shell=True, cwd=tmp_path, capture_output=True, check=True).stdout == b"640\n"
    db = sqlite3.connect(tmp_path / "db"); db.execute("create table t(x)"); db.commit(); db.close()
`)
	s.File("pytest.ini", "[pytest]\ntestpaths = tests\npythonpath = .\n")
}

// debRepository makes a repository of one Debian package in the project, and a state of apt's own beside it.
const debRepository = `
mkdir -p pkg/DEBIAN pkg/usr/share/doc/srt-sample repo state/lists/partial state/cache/archives/partial out; chmod -R a+rwX state out
printf 'Package: srt-sample\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.com>\nDescription: sample\n' >pkg/DEBIAN/control
echo text >pkg/usr/share/doc/srt-sample/README; dpkg-deb --root-owner-group -b pkg repo/srt-sample_1.0_all.deb >/dev/null; cd repo
{ cat ../pkg/DEBIAN/control; printf 'Filename: ./srt-sample_1.0_all.deb\nSize: %s\nSHA256: %s\n\n' "$(stat -c %s *.deb)" "$(sha256sum *.deb | cut -d' ' -f1)"; } >Packages
cd ..; : >state/status; echo "deb [trusted=yes] file:$PWD/repo ./" >state/sources.list
`

const aptScript = `
options="-o Dir::Etc::sourcelist=$PWD/state/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$PWD/state/lists
-o Dir::State::status=$PWD/state/status -o Dir::Cache=$PWD/state/cache -o Debug::NoLocking=1 -q"
apt-get $options update; cd out; apt-get $options download srt-sample; dpkg-deb -c srt-sample_1.0_all.deb; dpkg-deb -x srt-sample_1.0_all.deb x; ls -R
`
