# An upstream server of the smuggling tests: http.server parses the head, this file the body. Each event is a line of
# JSON on standard output; the server ends with its standard input.
import http.server
import json
import sys
import threading

lock = threading.Lock()


def tell(**event):
    with lock:
        print(json.dumps(event), flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        tell(open=1)
        super().setup()

    def finish(self):
        try:
            super().finish()
        finally:
            tell(open=-1)

    def chunked(self):
        body = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            if size == 0:
                break
            data = self.rfile.read(size)
            if len(data) < size or self.rfile.readline() != b"\r\n":
                return None
            body += data
        while True:
            line = self.rfile.readline()
            if line == b"\r\n":
                return body
            if not line:
                return None

    def answer(self):
        lengths = self.headers.get_all("Content-Length") or []
        codings = self.headers.get_all("Transfer-Encoding") or []
        if len(lengths) + len(codings) > 1:
            tell(request="two framings")
            return
        try:
            if codings:
                body = self.chunked()
            else:
                length = int(lengths[0]) if lengths else 0
                body = self.rfile.read(length)
                if len(body) < length:
                    body = None
        except ValueError:
            body = None
        if body is None:
            self.close_connection = True
            return
        tell(request=self.command + " " + self.path + " " + body.decode("latin-1"), host=self.headers.get("Host"))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
server.handle_error = lambda *args: None
threading.Thread(target=server.serve_forever, daemon=True).start()
tell(port=server.server_address[1])
sys.stdin.read()
