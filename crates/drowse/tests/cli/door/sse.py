"""A server of events: sse.py PORT. Each client gets six, half a second apart, and then the end."""

import http.server
import sys
import time


class Events(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for number in range(6):
            self.wfile.write(f"id: {number}\ndata: tick {number}\n\n".encode())
            time.sleep(0.5)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Events).serve_forever()
