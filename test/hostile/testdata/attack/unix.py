"""Ways to a socket of the host whose path is in the first argument. It lies in a directory that the command may write."""
from hostile import *
import tempfile
HOST = sys.argv[1]
work = os.path.dirname(HOST)
home = tempfile.mkdtemp(dir=os.environ["HOME"]); os.chdir(home)

def to(path, kind=TCP):
    s = socket.socket(UNIX, kind); s.settimeout(30); s.connect(path); s.send(b"stolen")
say("path", lambda: to(HOST))
say("seqpacket", lambda: to(HOST, socket.SOCK_SEQPACKET))
def nonblock():
    s = socket.socket(UNIX, TCP | socket.SOCK_NONBLOCK); s.connect(HOST)
say("non-blocking", nonblock)
def relative():
    os.chdir(work)
    try: to(os.path.basename(HOST))
    finally: os.chdir(home)
say("relative", relative)
def link():
    os.symlink(HOST, "sym"); to("sym")
say("symbolic link", link)
def hard():
    os.link(HOST, work + "/hard"); to(work + "/hard")
say("hard link", hard)
def directory():
    os.symlink(work, "dir"); to("dir/" + os.path.basename(HOST))
say("link to its directory", directory)
say("by dot dot", lambda: to(work + "/../" + os.path.basename(work) + "/./" + os.path.basename(HOST)))
def opened():
    fd = os.open(HOST, os.O_PATH); to("/proc/self/fd/%d" % fd)
say("by descriptor", opened)
def opened_directory():
    fd = os.open(work, os.O_PATH); to("/proc/self/fd/%d/%s" % (fd, os.path.basename(HOST)))
say("by descriptor of its directory", opened_directory)
say("by root", lambda: to("/proc/self/root" + HOST))
say("by working directory", lambda: (os.chdir(work), to("/proc/self/cwd/" + os.path.basename(HOST))))
os.chdir(home)
say("by thread", lambda: to("/proc/thread-self/root" + HOST))
say("by pid 1", lambda: to("/proc/1/root" + HOST))
def renamed():
    os.rename(HOST, work + "/renamed")
    try: to(work + "/renamed")
    finally: os.rename(work + "/renamed", HOST)
say("renamed", renamed)
def exchanged():
    """One of our own, and the host's in its place."""
    mine = work + "/mine"; l = socket.socket(UNIX, TCP); l.bind(mine); l.listen(4); to(mine)
    os.rename(mine, work + "/away"); os.rename(HOST, mine)
    try: to(mine)
    finally: os.rename(mine, HOST); l.close(); os.unlink(work + "/away")
say("in place of our own", exchanged)
def reused():
    """The number of an inode that was ours, which the host's next socket may get."""
    for i in range(300):
        l = socket.socket(UNIX, TCP); l.bind(work + "/n"); l.listen(1); l.close(); os.unlink(work + "/n")
    to(HOST)
say("after many of our own", reused)
def bound_over():
    s = socket.socket(UNIX, TCP); s.bind(HOST)
say("bind over it", bound_over)
def unlinked():
    """A listener of ours, its name taken by the host's."""
    a, b = socket.socketpair(UNIX, TCP); a.connect(HOST)
say("connected again", unlinked)
def pair(kind):
    a, b = socket.socketpair(UNIX, kind); a.sendto(b"stolen", HOST)
say("sendto of a stream", lambda: pair(TCP))
say("sendto of seqpacket", lambda: pair(socket.SOCK_SEQPACKET))
def message():
    s = socket.socket(UNIX, TCP); s.sendmsg([b"stolen"], [], 0, HOST)
say("sendmsg", message)
say("abstract", lambda: to("\0" + sys.argv[2]))
say("abstract with its path", lambda: to("\0" + HOST))
def longest():
    s = socket.socket(UNIX, TCP); at = struct.pack("=H", 1) + HOST.encode().ljust(108, b"\0")
    if libc.connect(s.fileno(), at, len(at)): raise OSError(ctypes.get_errno(), "")
say("the longest address", longest)
def family(f):
    s = socket.socket(UNIX, TCP); at = struct.pack("=H", f) + HOST.encode() + b"\0"
    if libc.connect(s.fileno(), at, len(at)): raise OSError(ctypes.get_errno(), "")
say("another family", lambda: family(2))
say("no family", lambda: family(0))
def chrooted():
    pid = os.fork()
    if pid == 0:
        try: os.chroot(work); to("/" + os.path.basename(HOST))
        except OSError: os._exit(0)
        os._exit(1)
    return os.waitpid(pid, 0)[1]
say("another root", chrooted)

# Descriptors that go from process to process, in the middle of it.
def passed():
    a, b = socket.socketpair(UNIX, TCP); s = socket.socket(UNIX, TCP)
    socket.send_fds(a, [b"x"], [s.fileno()]); _, fds, _, _ = socket.recv_fds(b, 1, 1)
    t = socket.socket(fileno=fds[0]); t.connect(HOST)
say("passed on", passed)

# Its own sockets work between its processes, whatever becomes of their names.
def own():
    l = socket.socket(UNIX, TCP); l.bind("own"); l.listen(4)
    out = []
    for path in ("own", home + "/own", "/proc/self/cwd/own"): to(path); out.append(l.accept()[0].recv(6))
    os.rename("own", "other"); to("other"); out.append(l.accept()[0].recv(6))
    os.link("other", "third"); to("third"); out.append(l.accept()[0].recv(6))
    c = socket.socket(UNIX, TCP); c.connect("third"); d = l.accept()[0]
    pid, uid, gid = struct.unpack("iII", d.getsockopt(1, 17, 12))
    return set(out), uid == os.getuid(), gid == os.getgid()
say("own", own)
done()
