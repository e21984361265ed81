"""A WebSocket server: websocket.py PORT. What it is told in a text it says in capitals."""

import base64
import hashlib
import socketserver
import struct
import sys

TEXT, CLOSE = 1, 8


class Shouts(socketserver.StreamRequestHandler):
    def handle(self):
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if "sec-websocket-key" not in headers:
            return
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        head = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        self.wfile.write(f"{head}sec-websocket-accept: {accept}\r\n\r\n".encode())
        while (frame := self.read()) is not None:
            kind, words = frame
            self.say(kind, words.upper() if kind == TEXT else words)
            if kind == CLOSE:
                return

    def read(self):
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 127
        if length == 126:
            (length,) = struct.unpack(">H", self.rfile.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.rfile.read(8))
        mask = self.rfile.read(4)
        words = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(length)))
        return head[0] & 15, words

    def say(self, kind, words):
        length = bytes([len(words)]) if len(words) < 126 else b"\x7e" + struct.pack(">H", len(words))
        self.wfile.write(bytes([128 | kind]) + length + words)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Shouts).serve_forever()
