"""An echo server that writes down what it was asked, once for each time.

usage: echo.py HOST PORT FILE

A frame is an id of 8 bytes, the length of its words in 4, their checksum in 4, and the words. A frame whose
checksum is wrong ends the connection; any other goes back as it came, and its id is a line of FILE. One thread for
all, so that thousands of connections cost little.
"""

import resource
import selectors
import socket
import struct
import sys
import zlib

HEAD = struct.Struct(">QII")

host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
book = open(path, "a", buffering=1)
selector = selectors.DefaultSelector()


class Conn:
    def __init__(self, sock):
        self.sock = sock
        self.heard = bytearray()
        self.to_say = bytearray()
        self.is_over = False

    def take_frames(self):
        while len(self.heard) >= HEAD.size:
            number, length, checksum = HEAD.unpack_from(self.heard)
            end = HEAD.size + length
            if len(self.heard) < end:
                return
            if zlib.crc32(self.heard[HEAD.size : end]) != checksum:
                raise ValueError("a wrong checksum")
            book.write(f"{number}\n")
            self.to_say += self.heard[:end]
            del self.heard[:end]

    def go_on(self, mask):
        if mask & selectors.EVENT_READ and not self.is_over:
            heard = self.sock.recv(1 << 16)
            self.is_over = not heard
            self.heard += heard
            self.take_frames()
        while self.to_say:
            try:
                del self.to_say[: self.sock.send(self.to_say)]
            except BlockingIOError:
                break
        if self.is_over and not self.to_say:
            raise EOFError
        wants = 0 if self.is_over else selectors.EVENT_READ
        selector.modify(self.sock, wants | (selectors.EVENT_WRITE if self.to_say else 0), self)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((host, port))
listener.listen(4096)
listener.setblocking(False)
selector.register(listener, selectors.EVENT_READ, None)
while True:
    for key, mask in selector.select():
        if key.data is None:
            try:
                sock, _ = listener.accept()
            except BlockingIOError:
                continue
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ, Conn(sock))
            continue
        try:
            key.data.go_on(mask)
        except (OSError, EOFError, ValueError):
            selector.unregister(key.fileobj)
            key.fileobj.close()
