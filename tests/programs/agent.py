"""What a coding agent is to a sandbox: a screen of its own, a configuration directory, git and a host that nobody has allowed.

Keys: w writes a file and commits it, n asks for a host, q leaves.
"""
import curses, os, subprocess, sys, urllib.request

CONFIGURATION = os.path.expanduser("~/.config/agent/sessions")


def session():
    os.makedirs(os.path.dirname(CONFIGURATION), exist_ok=True)
    with open(CONFIGURATION, "a+") as file:
        file.write("one\n")
        file.seek(0)
        return len(file.readlines())


def write():
    with open("plan.md", "a") as file:
        file.write("done\n")
    script = "git add plan.md && git commit --quiet -m 'By the agent' && git log -1 --format='%an <%ae>'"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    return f"committed by {done.stdout.strip()}{done.stderr.strip()}"


def ask():
    try:
        urllib.request.urlopen(f"http://{sys.argv[1]}/", timeout=5)
        return "reached it"
    except OSError:
        return "could not reach it"


def main(screen):
    screen.addstr(0, 0, f"agent in {os.getcwd()}")
    screen.addstr(1, 0, f"session {session()} on {os.ttyname(0)}")
    while (key := screen.getkey()) != "q":
        screen.addstr(3, 0, {"w": write, "n": ask}[key]())
        screen.clrtoeol()


curses.wrapper(main)
