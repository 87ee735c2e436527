/** The subcommands, declared once: what they are called and what they take. main.ts knows where their code is. */
export interface VerbDeclaration {
  readonly name: string
  /** What may follow the name. */
  readonly usage: string
  readonly help: string
  /** Words and flags that a shell can complete after the name. */
  readonly completions: readonly string[]
}

export const VERBS = [
  {
    name: 'exec',
    usage: '[options] -- COMMAND [ARG...]',
    help: 'Run one command in a sandbox.',
    completions: [],
  },
  {
    name: 'profiles',
    usage: '[show NAME]',
    help: 'List the profiles, or print one with all that it extends.',
    completions: ['show', '--json'],
  },
  {
    name: 'workers',
    usage: 'list | show NAME | check [TREE]',
    help: 'List the workers of a project, print what one may do, or find mistakes in all their files.',
    completions: ['list', 'show', 'check', '--workshop', '--json'],
  },
  {
    name: 'init',
    usage: '',
    help: 'Write a commented workshop and a first worker for this project.',
    completions: [],
  },
  {
    name: 'doctor',
    usage: '[--json] [--facts|--self-test]',
    help: 'Say what this machine can hold, and how to mend it.',
    completions: ['--json', '--facts', '--self-test', '--engine=bwrap', '--engine=unshare'],
  },
  {
    name: 'ps',
    usage: '[--json]',
    help: 'List the runs of this user that are alive.',
    completions: ['--json'],
  },
  {
    name: 'kill',
    usage: 'ID...',
    help: 'End runs and everything they started.',
    completions: [],
  },
  {
    name: 'prune',
    usage: '',
    help: 'Remove what killed runners left behind.',
    completions: [],
  },
  {
    name: 'images',
    usage: '[--pull] [--json]',
    help: 'List the images that stand for a runtime, or fetch those that are missing.',
    completions: ['--pull', '--json'],
  },
  {
    name: 'audit',
    usage: 'verify FILE',
    help: 'Check that nobody changed an audit log.',
    completions: ['verify'],
  },
  {
    name: 'pool',
    usage: 'start [options] [-- COMMAND]|status [--json]|stop',
    help: 'Keep sandboxes ready, so that runs start at once.',
    completions: ['start', 'status', 'stop', '--json', '--size', '--idle-timeout', '--profile'],
  },
  {
    name: 'cache',
    usage: 'clear',
    help: 'Forget the plans that are kept to start faster.',
    completions: ['clear'],
  },
  {
    name: 'completion',
    usage: 'bash|zsh|fish',
    help: 'Print the completion of the command line for a shell.',
    completions: ['bash', 'zsh', 'fish'],
  },
] as const satisfies readonly VerbDeclaration[]

export type VerbName = (typeof VERBS)[number]['name']
