"""What the attackers have in common. Every attack says what it got, and goes on."""
import ctypes, errno, os, select, socket, struct, sys, threading, time

GOOD, GOOD6, BAD, BAD6, PORT = "10.203.1.1", "fd5a:203:1::1", "10.203.2.1", "fd5a:203:1::bad", 7
TCP, UDP, INET, INET6, UNIX = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
libc = ctypes.CDLL(None, use_errno=True)

def name(e):
    return errno.errorcode.get(e.errno, repr(e)) if isinstance(e, OSError) and e.errno else repr(e)

def say(label, f):
    """Says what a call gave: its result, or its error."""
    try:
        r = f()
        print(label, "ok" if r is None or isinstance(r, socket.socket) else r, flush=True)
        return r
    except Exception as e:
        print(label, name(e), flush=True)

def tcp(host=BAD, port=PORT, family=INET):
    s = socket.socket(family, TCP)
    s.settimeout(30)
    s.connect((host, port))
    return s

def banner(s):
    s.settimeout(30)
    return s.recv(100).decode().strip()

def nonblocking(host=BAD, port=PORT, family=INET):
    s = socket.socket(family, TCP | socket.SOCK_NONBLOCK)
    e = s.connect_ex((host, port))
    if e != errno.EINPROGRESS:
        raise OSError(e, "")
    return s

def settled(s):
    """Waits for a connection that is under way."""
    select.select([], [s], [], 30)
    e = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if e:
        raise OSError(e, "")
    return s

def syscall(number, *args):
    r = libc.syscall(number, *args)
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r

def done():
    print("DONE", flush=True)
