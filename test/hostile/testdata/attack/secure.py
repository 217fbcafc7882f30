"""Clients that speak to srt's proxies byte by byte. Every one of them ends, whatever it is answered."""
import base64, ssl, urllib.parse
from hostile import *

url = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
AUTH = "Proxy-Authorization: Basic " + base64.b64encode((url.username + ":" + url.password).encode()).decode() + "\r\n"
TOKEN = os.environ.get("TOKEN", "")

def via():
    s = socket.create_connection((url.hostname, url.port), 30)
    s.settimeout(30)
    return s

def head(s):
    """Reads up to an empty line, and no further."""
    b = b""
    while not b.endswith(b"\r\n\r\n"):
        c = s.recv(1)
        if not c: break
        b += c
    return b

def connect(target):
    s = via()
    s.sendall(("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + AUTH + "\r\n").encode())
    h = head(s)
    if not h.startswith(b"HTTP/1.1 200 "):
        raise OSError(0, h.split(b"\r\n")[0].decode() + " " + rest(s)[-200:].decode(errors="replace").strip())
    return s

def shake(s, sni, verify=False):
    c = ssl.create_default_context()
    if not verify:
        c.check_hostname = False
        c.verify_mode = ssl.CERT_NONE
    return c.wrap_socket(s, server_hostname=sni)

def tunnel(target, sni=None, verify=False):
    return shake(connect(target), sni or target.rsplit(":", 1)[0], verify)

def rest(s):
    """Reads to the end, however that comes."""
    b = b""
    try:
        while True:
            c = s.recv(1 << 16)
            if not c: return b
            b += c
    except OSError:
        return b

def get(path, host, *lines):
    return ("\r\n".join(["GET " + path + " HTTP/1.1", "Host: " + host] + list(lines)) + "\r\n\r\n").encode()

def one(s):
    """Reads one response with a length: its status and its body."""
    h = head(s)
    if not h: return "nothing", b""
    n = [int(l.split(b":")[1]) for l in h.lower().split(b"\r\n") if l.startswith(b"content-length:")]
    body = b""
    while n and len(body) < n[0]:
        c = s.recv(n[0] - len(body))
        if not c: break
        body += c
    return h.split(b"\r\n")[0].decode(errors="replace"), body

def quietly(f):
    """Does what may fail: what counts is what arrives."""
    try:
        return f()
    except Exception as e:
        print("#", name(e), flush=True)
