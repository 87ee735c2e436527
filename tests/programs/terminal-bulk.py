"""Sends bytes through the terminal of a sandbox and back, and says whether they came back unchanged.

argv: the words that start a command in a sandbox with a terminal.
stdout: one JSON object {status, bytes, same, rest}: rest is what came behind them.
"""
import json, os, subprocess, sys, threading

SIZE = 2 << 20
ECHO = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready\\n")
left = int(sys.argv[1])
while left:
    block = os.read(0, min(left, 65536))
    left -= len(block)
    while block: block = block[os.write(1, block):]
end = os.read(0, 100)
os.write(1, b"end " + str(list(end)).encode())
"""
data = os.urandom(SIZE)
child = subprocess.Popen(sys.argv[1:] + ["python3", "-c", ECHO, str(SIZE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
if child.stdout.readline() != b"ready\n":
    sys.exit("the command did not begin")


def send():
    child.stdin.write(data)
    child.stdin.close()


threading.Thread(target=send, daemon=True).start()
back = b""
while len(back) < SIZE and (block := child.stdout.read1(1 << 16)):
    back += block
back, rest = back[:SIZE], back[SIZE:] + child.stdout.read()
json.dump({"status": child.wait(), "bytes": len(back), "same": back == data, "rest": rest.decode("utf8", "replace")}, sys.stdout)
