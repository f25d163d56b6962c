# terminal.sh: to be sourced.
# on_terminal FILE COMMAND...: runs it on a terminal of its own. FILE gets all that it says there, to
# the last word, for which script(1) waits 10 ms: where others compute it may come later.
on_terminal() {
    python3 - "$@" << 'END'
import os, pty, sys
process, terminal = pty.fork()
if process == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
with open(sys.argv[1], "wb", buffering=0) as said:
    while True:
        try:
            said.write(os.read(terminal, 65536))
        except OSError:  # Linux: nobody has it open any more
            break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) % 256)
END
}
