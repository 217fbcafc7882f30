"""Prints what a server answers, in the way that the first argument names. TOKEN, where it is set, is a bearer token."""
import asyncio
import errno
import os
import socket
import ssl
import sys

BEARER = {"Authorization": "Bearer " + os.environ["TOKEN"]} if "TOKEN" in os.environ else {}


def with_requests(*urls):
    import requests
    for url in urls:
        answer = requests.get(url, headers=BEARER, timeout=60)
        answer.raise_for_status()
        print("requests", answer.text)


def with_requests_basic(url):
    """A user and a password, in JSON as well."""
    import requests
    token = os.environ["TOKEN"]
    answer = requests.post(url, json={"token": token}, auth=("me", token), timeout=60)
    answer.raise_for_status()
    print("requests", answer.text)


def with_requests_netrc(url):
    import requests
    answer = requests.get(url, timeout=60)
    answer.raise_for_status()
    print("requests", answer.text)


def with_urllib(*urls):
    from urllib.request import Request, urlopen
    for url in urls:
        print("urllib", urlopen(Request(url, headers=BEARER), timeout=60).read().decode())


def with_websocket(url):
    import websocket
    connection = websocket.create_connection(url, timeout=60, header=["%s: %s" % pair for pair in BEARER.items()])
    for size in (5, 200, 70000):
        connection.send("x" * size)
        if connection.recv() != "x" * size:
            sys.exit("the echo of %d bytes is another" % size)
    connection.close()
    print("websocket echoes")


async def over(host, port, context):
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    if context is None:
        writer.write(b"asyncio\n")
    else:
        writer.write(b"GET / HTTP/1.1\r\nHost: " + host.encode() + b"\r\nConnection: close\r\n\r\n")
    print("asyncio", (await reader.read()).decode())
    writer.close()


def with_asyncio(host, plain, tls):
    async def both():
        await asyncio.gather(over(host, plain, None), over(host, tls, ssl.create_default_context()))
    asyncio.run(both())


def with_quic_first(host, tls):
    """As a QUIC client does: datagrams first, and TCP as soon as they fail."""
    for family, kind, proto, _, address in socket.getaddrinfo(host, int(tls), type=socket.SOCK_DGRAM):
        for addressed in (True, False):
            with socket.socket(family, kind, proto) as s:
                try:
                    if addressed:
                        s.sendto(b"\xc0" + bytes(1199), address)
                    else:
                        s.connect(address)
                        s.send(b"\xc0" + bytes(1199))
                    sys.exit("a datagram left for %s" % (address,))
                except OSError as e:
                    if e.errno != errno.EACCES:
                        raise
                    print("udp", errno.errorcode[e.errno])
    with_urllib("https://%s:%s/" % (host, tls))


def with_socket(host, port):
    with socket.create_connection((host, int(port)), timeout=60) as s:
        s.sendall(b"socket\n")
        s.shutdown(socket.SHUT_WR)
        print(s.makefile().read())


def with_epoll(host, port):
    """Non-blocking, watched since before connect, and raced over all addresses, as event loops do."""
    import select
    with select.epoll() as poll:
        racing = {}
        for family, kind, proto, _, address in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
            s = socket.socket(family, kind | socket.SOCK_NONBLOCK, proto)
            poll.register(s, select.EPOLLOUT | select.EPOLLERR)
            racing[s.fileno()] = s
            code = s.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                poll.unregister(s)
                del racing[s.fileno()]
                failure = code
        while racing:
            for fd, _ in poll.poll(60):
                failure = racing[fd].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failure == 0 and racing[fd].connect_ex(racing[fd].getpeername()) in (0, errno.EISCONN):
                    winner = racing[fd]
                    winner.setblocking(True)
                    winner.sendall(b"epoll\n")
                    winner.shutdown(socket.SHUT_WR)
                    print(winner.makefile().read())
                    return
                poll.unregister(fd)
                del racing[fd]
        sys.exit(os.strerror(failure))


def with_errno(*targets):
    """Prints the name of the error that each host and port gives: to a connect that waits, and to one that does not."""
    import select
    for host, port in zip(targets[::2], targets[1::2]):
        for family, kind, proto, _, address in socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM):
            with socket.socket(family, kind, proto) as s:
                waiting = s.connect_ex(address)
            with socket.socket(family, kind | socket.SOCK_NONBLOCK, proto) as s:
                prompt = s.connect_ex(address)
                if prompt == errno.EINPROGRESS:
                    poll = select.poll()
                    poll.register(s, select.POLLOUT)
                    poll.poll()
                    prompt = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            print(*(errno.errorcode.get(code, code) for code in (waiting, prompt)))


globals()["with_" + sys.argv[1]](*sys.argv[2:])
