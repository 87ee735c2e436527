"""libseccomp-filter.py < PROFILE.json > FILTER: Docker's seccomp JSON to BPF by libseccomp, the way container runtimes do it.

Like them it leaves out rules that repeat the default, and calls that this libseccomp has not heard of: those it names on stderr.
Exit status 77: there is no libseccomp here.
"""

import ctypes
import json
import sys
import tempfile

ERRNO = 0x00050000
ALLOW = 0x7FFF0000
MASKED_EQ = 7


class Comparison(ctypes.Structure):
    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    ]


def main():
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        print(error, file=sys.stderr)
        return 77
    library.seccomp_init.restype = ctypes.c_void_p
    profile = json.load(sys.stdin)
    default = ERRNO | profile["defaultErrnoRet"]
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))
    for rule in profile["syscalls"]:
        action = ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else ERRNO | rule["errnoRet"]
        if action == default:
            continue
        questions = [Comparison(q["index"], MASKED_EQ, q["value"], q["valueTwo"]) for q in rule.get("args", [])]
        array = (Comparison * len(questions))(*questions)
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number < 0:
                print(name, file=sys.stderr)
                continue
            failed = library.seccomp_rule_add_array(
                context, ctypes.c_uint32(action), number, len(questions), ctypes.byref(array)
            )
            if failed:
                raise SystemExit(f"{name}: libseccomp answers {failed} to {rule}")
    with tempfile.TemporaryFile() as output:
        if library.seccomp_export_bpf(context, output.fileno()):
            raise SystemExit("no filter came out")
        output.seek(0)
        sys.stdout.buffer.write(output.read())
    return 0


sys.exit(main())
