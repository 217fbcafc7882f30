package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
)

// linuxProcess is a started command on Linux.
type linuxProcess struct {
	cmd       *Cmd
	process   *ns.Process
	launch    *launch
	session   ns.Session
	files     [3]*os.File // the command's standard streams
	copied    [3]*os.File // the caller's own, where the command has a copy
	listeners []net.Listener
	serving   sync.WaitGroup // a goroutine for each listener
	broker    *brokerService
	captured  *captureService
	how       attempt
	loans     loans
	once      sync.Once
}

// start launches the command (docs/architecture.md).
func (c *Cmd) start() (process, error) {
	p := &linuxProcess{cmd: c, files: c.streams.files}
	if err := p.copySupplied(); err != nil {
		p.release()
		return nil, err
	}
	choice, err := chooseMode(c.cfg.EnableWeakerNestedSandbox)
	if err != nil {
		p.release()
		return nil, err
	}
	p.how.setMode(choice.mode)
	err = p.begin()
	for err != nil {
		another, why := p.otherAttempt(err)
		if !another {
			if why != nil {
				err = why // which wraps it
			}
			break
		}
		p.how.again = true
		if p.launch != nil {
			p.launch.giveBack()
		}
		err = p.begin()
	}
	if err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// otherAttempt changes how the launch is tried, if it failed in a way that another one may avoid: what is begun again begins with
// another process, since filters and mounts were chosen for the first. The error adds to a failure that no other one avoids.
func (p *linuxProcess) otherAttempt(err error) (bool, error) {
	log := p.cmd.sandbox.opts.logger
	if refused, ok := errors.AsType[*hooksError](err); ok {
		log.Debug("the command is started with the broker", "reason", refused.Error())
		p.how.withoutHooks = refused
		return true, nil
	}
	mode, another, why := lesserMode(p.how.mode, err, p.cmd.cfg.EnableWeakerNestedSandbox)
	if another {
		log.Debug("the command is started in mode "+mode.String(), "reason", err.Error())
		p.how.setMode(mode)
	}
	return another, why
}

// begin starts the command once, in the mode of the attempt.
func (p *linuxProcess) begin() error {
	if p.how.confines() {
		return p.beginConfined()
	}
	return p.beginApart()
}

// beginApart makes the namespaces and, at the same time, the plan: the two take about as long as one another, and neither
// needs the other until the program starts.
func (p *linuxProcess) beginApart() error {
	if err := p.cmd.limitCores(); err != nil {
		return err
	}
	h, err := readIdentity()
	if err != nil {
		return err
	}
	timing := p.cmd.sandbox.opts.timing
	timing("identities read")
	abi, err := landlockABI()
	if err != nil {
		return err
	}
	p.session = p.cmd.prepared.chooseSession(p.files[0], p.files[1], abi)
	program, err := ns.NewProgram()
	if err != nil {
		return err
	}
	writeNetwork(program)
	made := make(chan preparedProcess, 1)
	go func() {
		prepared, err := ns.Prepare(h.namespaces(p.files[0], p.files[1], p.files[2], p.session), program)
		timing("namespaces made")
		made <- preparedProcess{prepared, err}
	}()
	planErr := p.plan(h, program)
	process := <-made
	if planErr == nil {
		planErr = p.cmd.endedEarly() // asked as late as the command can still be kept from existing (CLI-14, LIB-17)
	}
	switch {
	case process.err != nil:
		return errors.Join(planErr, process.err, program.Release())
	case planErr != nil:
		return errors.Join(planErr, process.Close())
	}
	if err := p.launch.armNames(process.Prepared); err != nil {
		return errors.Join(err, process.Close())
	}
	p.launch.armTracer(process.Prepared)
	stop := context.AfterFunc(p.cmd.ctx, func() { _ = process.Kill() }) // a step that hangs is cut short, too
	p.process, err = process.Start(&ns.Command{Candidates: p.launch.candidates, Args: p.cmd.Args, Env: p.launch.env, Hold: p.launch.holds(),
		Null: p.cmd.sandbox.opts.nullDescriptor})
	stop()
	p.launch.handedOver()
	if err != nil {
		return err
	}
	timing("program done")
	p.process.OnStop = p.commandStopped
	if err = p.serveAll(); err != nil {
		_ = p.process.Kill()
		_, _ = p.process.Wait() // says that it was killed
	}
	return err
}

// serveAll starts what answers the command.
func (p *linuxProcess) serveAll() error {
	err := p.serveCapture()
	if err == nil {
		err = p.serveBroker()
	}
	if err == nil {
		err = p.serve()
	}
	return err
}

// preparedProcess is the result of ns.Prepare.
type preparedProcess struct {
	*ns.Prepared
	err error
}

// plan compiles the settings and writes the program.
func (p *linuxProcess) plan(h host, program *ns.Program) error {
	l, err := p.cmd.prepare(h, p.how)
	if err != nil {
		return err
	}
	p.launch = l // what it holds is given back by release
	if err := l.chooseStreams(p.files); err != nil {
		return err
	}
	p.cmd.sandbox.opts.timing("files planned")
	err = l.write(program)
	p.cmd.sandbox.opts.timing(fmt.Sprintf("program of %d steps written", program.Len()))
	return err
}

// serve hands the listeners that the sandbox made to the session's proxies, or to a proxy of the host's (NET-64).
func (p *linuxProcess) serve() error {
	s := p.cmd.sandbox
	ports := [...]int{httpPort, socksPort} // in this order for each family (ns.Program.Listen)
	for i := range maxListeners {
		file := p.takeFile(i)
		if file == nil {
			continue
		}
		ln, err := net.FileListener(file)
		file.Close()
		if err != nil {
			return err
		}
		p.listeners = append(p.listeners, ln)
		serve := func() error { return s.proxy.ServeFor(ln, p.cmd.Key(), p.captured.namesOf()) }
		if port := external(&s.begun.Network, ports[i%len(ports)]); port != 0 {
			serve = func() error { return s.proxy.Forward(ln, port) }
		}
		p.serveOn(serve)
	}
	return nil
}

// serveOn serves a listener until it is closed.
func (p *linuxProcess) serveOn(serve func() error) {
	p.serving.Add(1)
	go func() {
		defer p.serving.Done()
		// A command that ends closes its listener, a session that ends closes the proxy.
		if err := serve(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, proxy.ErrServerClosed) {
			p.cmd.sandbox.opts.logger.Warn("a listener of the sandbox failed", "error", err)
		}
	}()
}

// external gives the port of a proxy on the host's loopback that serves a port of the sandbox in srt's place (NET-64), 0 if
// srt does.
func external(n *config.Network, port int) int {
	if port == socksPort {
		return n.SOCKSProxyPort
	}
	return n.HTTPProxyPort
}

func (p *linuxProcess) wait() (int, error) {
	st, err := p.process.Wait()
	returnOffsets(p.launch.streams, p.process.Files, p.files)
	if p.session == ns.SessionForeground {
		returnTerminal(p.files[0])
	}
	p.release()
	var notRun *ns.ExecError
	if errors.As(err, &notRun) {
		code := 126
		if errors.Is(err, syscall.ENOENT) {
			code = 127
		}
		return code, &ExitError{Code: code, Reason: notRun.Error()}
	}
	return st.Code, err
}

// release closes what the launch opened on the host side.
func (p *linuxProcess) release() {
	p.once.Do(func() {
		p.returnCopies()
		p.broker.close()
		p.captured.close()
		if line := p.broker.planted(); line != "" {
			p.cmd.sandbox.opts.warn(line)
		}
		if p.launch != nil {
			p.launch.giveBack()
		}
		for _, ln := range p.listeners {
			ln.Close()
		}
		p.serving.Wait() // the session knows then that their clients have ended
		if p.process != nil {
			for _, f := range p.process.Files {
				if f != nil {
					f.Close()
				}
			}
		}
	})
}

func (p *linuxProcess) pid() int { return p.process.Pid() }

func (p *linuxProcess) signal(s syscall.Signal) error { return p.process.Signal(s) }

func (p *linuxProcess) inCallersGroup() bool { return p.session == ns.SessionShared }

func (p *linuxProcess) kill() error { return p.process.Kill() }
