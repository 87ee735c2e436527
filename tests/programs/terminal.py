"""Runs a program on a terminal and plays a person in front of it.

stdin: one JSON object {argv, cwd, env, rows, columns, steps}. A step waits until the screen shows a text and, where it says so, the
terminal was seen out of line mode; then it types, resizes or sends a signal to the program:
{"until": "ready", "untilRaw": true, "type": "\\u0003", "resize": [30, 100], "signal": 15}.
stdout: one JSON object {status, signal, screen, restored, raw}: restored is whether the terminal has its modes, its open file its
flags, and no exclusive use of it, as before; raw is whether the terminal was ever out of line mode.
"""
import fcntl, json, os, pty, select, struct, sys, termios, time

LIMIT_SECONDS = 25

asked = json.load(sys.stdin)
steps = list(asked["steps"])
master, slave = pty.openpty()


def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


resize(asked["rows"], asked["columns"])


def state():
    exclusive = bytearray(4)
    fcntl.ioctl(slave, 0x80045440, exclusive)  # TIOCGEXCL
    return termios.tcgetattr(slave), fcntl.fcntl(slave, fcntl.F_GETFL), bytes(exclusive)


before = state()
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    os.closerange(3, 64)
    os.chdir(asked["cwd"])
    os.execve(asked["argv"][0], asked["argv"], asked["env"])

screen, seen, raw = b"", 0, False


def play():
    global seen
    while steps and steps[0]["until"].encode() in screen[seen:] and (raw or not steps[0].get("untilRaw")):
        step = steps.pop(0)
        seen = screen.index(step["until"].encode(), seen) + len(step["until"])
        if "resize" in step:
            resize(*step["resize"])
        if "type" in step:
            os.write(master, step["type"].encode())
        if "signal" in step:
            os.kill(child, step["signal"])


end, result = time.monotonic() + LIMIT_SECONDS, None
while result is None and time.monotonic() < end:
    if select.select([master], [], [], 0.05)[0]:
        screen += os.read(master, 65536)
    raw = raw or not termios.tcgetattr(slave)[3] & termios.ICANON
    play()
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid == child:
        result = status
while select.select([master], [], [], 0)[0]:
    screen += os.read(master, 65536)
if result is None:
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("the program did not end; the screen shows: " + repr(screen))
json.dump(
    {
        "status": os.WEXITSTATUS(result) if os.WIFEXITED(result) else None,
        "signal": os.WTERMSIG(result) if os.WIFSIGNALED(result) else None,
        "screen": screen.decode("utf8", "replace"),
        "restored": state() == before,
        "raw": raw,
    },
    sys.stdout,
)
