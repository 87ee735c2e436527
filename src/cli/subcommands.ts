/**
 * The subcommands, declared once: arguments.ts parses their command lines by it, and help, completion and manual page are printed from
 * it. main.ts knows where their code is. Pure data: no option of exec is loaded for it.
 */

/** The verb that completions ask; not for people, so no help names it. */
export const COMPLETE = '__complete'
/** The verb by which `run` starts itself again, as what stays. */
export const SUPERVISE = '__supervise'

/** Kinds of things whose names change from moment to moment; commands/complete.ts lists them. */
export type NamedThings =
  | 'profiles'
  | 'workers'
  | 'runs'
  | 'failed-runs'
  | 'layers'
  | 'sandboxes'
  | 'homes'
  | 'caches'
  | 'refused-hosts'

export interface ArgumentDeclaration {
  /** As usages show it: `FILE`. */
  readonly name: string
  /** A shell completes it with these. */
  readonly completes?: NamedThings | 'files' | 'directories'
  readonly isOptional?: true
  /** One or more. */
  readonly repeats?: true
  readonly choices?: readonly string[]
}

export interface FlagDeclaration {
  /** Long name without dashes. */
  readonly name: string
  /** One letter that means the same: `j` for `-j`. */
  readonly short?: string
  /** Name of the value in the usage; absent = a switch. */
  readonly argument?: string
  readonly choices?: readonly string[]
  readonly repeats?: true
  readonly help: string
}

/** In the order of `llm-do --help`. */
export const VERB_GROUPS = ['Run', 'Background', 'Changes', 'Explain', 'Serve', 'Maintain'] as const

export interface SubcommandDeclaration {
  readonly name: string
  /** An action has the group of its verb. */
  readonly group?: (typeof VERB_GROUPS)[number]
  /** One sentence. */
  readonly help: string
  readonly flags?: readonly FlagDeclaration[]
  readonly arguments?: readonly ArgumentDeclaration[]
  /** `list` and `show` of `workers list` and `workers show`. */
  readonly actions?: readonly SubcommandDeclaration[]
  /** Without an action it does something, too. */
  readonly isActionOptional?: true
  /** Options of exec that it takes as well: those that set the policy, and `--workshop`. */
  readonly execOptions?: readonly ('policy' | 'workshop')[]
  /** All other words are the command line of exec, which exec-arguments.ts parses. */
  readonly takesCommandLine?: true
}

/** A subcommand as the errors of its command line see it. */
export interface Verb {
  /** As it is typed: `pool start`. */
  readonly path: string
  readonly flags: readonly FlagDeclaration[]
}

export const JSON_FLAG: FlagDeclaration = { name: 'json', help: 'Print JSON.' }

export const SUBCOMMANDS = [
  { name: 'exec', group: 'Run', help: 'Run one command in a sandbox.', takesCommandLine: true },
  {
    name: 'profiles',
    group: 'Run',
    help: 'List the profiles, or print one with all that it extends.',
    flags: [JSON_FLAG],
    isActionOptional: true,
    actions: [
      {
        name: 'show',
        help: 'Print a profile with all that it extends.',
        arguments: [{ name: 'NAME', completes: 'profiles' }],
      },
    ],
  },
  {
    name: 'workers',
    group: 'Run',
    help: 'List the workers of a project, print what one may do, or find mistakes in all their files.',
    actions: [
      { name: 'list', help: 'List the workers of a project.', flags: [JSON_FLAG] },
      {
        name: 'show',
        help: 'Print what a worker may do here.',
        arguments: [{ name: 'NAME', completes: 'workers' }],
        flags: [JSON_FLAG],
        execOptions: ['workshop', 'policy'],
      },
      {
        name: 'check',
        help: 'Find mistakes in all files of workers and workshops.',
        arguments: [{ name: 'TREE', isOptional: true, completes: 'directories' }],
        flags: [JSON_FLAG],
        execOptions: ['policy'],
      },
    ],
  },
  { name: 'init', group: 'Run', help: 'Write a first workshop and worker for this project.' },
  {
    name: 'doctor',
    group: 'Explain',
    help: 'Check this machine and suggest fixes.',
    flags: [
      JSON_FLAG,
      { name: 'facts', help: 'Print what was observed of this machine.' },
      { name: 'self-test', help: 'Try the security contract on this machine.' },
      {
        name: 'engine',
        argument: 'ENGINE',
        choices: ['bwrap', 'unshare'],
        repeats: true,
        help: 'With --self-test: only this engine.',
      },
    ],
  },
  {
    name: 'why',
    group: 'Explain',
    help: 'Run the last failed command again, without a trace, and report what the sandbox refused.',
    arguments: [{ name: 'ID', isOptional: true, completes: 'failed-runs' }],
    flags: [{ name: 'list', help: 'List the last runs that failed, with their IDs.' }, JSON_FLAG],
  },
  {
    name: 'learn',
    group: 'Run',
    help: 'Print the smallest profile for a command, without a trace on the host.',
    takesCommandLine: true,
  },
  {
    name: 'mcp',
    group: 'Serve',
    help: 'Serve commands in a sandbox to an agent, by the Model Context Protocol; these options are its policy.',
    flags: [
      { name: 'http', argument: 'PORT', help: 'Serve HTTP on 127.0.0.1 instead of stdin and stdout (0: a free port).' },
      { name: 'token-file', argument: 'FILE', help: 'With --http: the token that clients have to send.' },
    ],
    execOptions: ['policy'],
  },
  {
    name: 'changes',
    group: 'Changes',
    help: 'List what a run changed; without ID, the last run here.',
    arguments: [{ name: 'ID', isOptional: true, completes: 'layers' }],
    flags: [JSON_FLAG],
  },
  {
    name: 'diff',
    group: 'Changes',
    help: 'Print what a run changed as a patch for git apply.',
    arguments: [
      { name: 'ID', isOptional: true, completes: 'layers' },
      { name: 'PATH', isOptional: true, repeats: true },
    ],
    flags: [{ name: 'stat', help: 'Print the number of changed lines for each file.' }, JSON_FLAG],
  },
  {
    name: 'apply',
    group: 'Changes',
    help: 'Apply the changes of a run to the host, atomically; without ID, of the last run here.',
    arguments: [
      { name: 'ID', isOptional: true, completes: 'layers' },
      { name: 'PATH', isOptional: true, repeats: true },
    ],
    flags: [
      { name: 'force', help: 'Also over what the host has changed since, and where nothing proves what is changed.' },
      { name: 'modes', help: 'Apply modes that let other users do more than before, too.' },
      JSON_FLAG,
    ],
  },
  {
    name: 'undo',
    group: 'Changes',
    help: 'Take back the last apply of a run, unless something has changed since.',
    arguments: [{ name: 'ID', isOptional: true, completes: 'layers' }],
    flags: [{ name: 'force', help: 'Also where nothing proves what that apply did.' }],
  },
  {
    name: 'discard',
    group: 'Changes',
    help: 'Discard the changes of runs.',
    arguments: [{ name: 'ID', isOptional: true, repeats: true, completes: 'layers' }],
    flags: [{ name: 'force', help: 'Also where they are damaged or half applied.' }],
  },
  {
    name: 'run',
    group: 'Background',
    help: 'Start a command in a sandbox in the background.',
    flags: [{ name: 'name', argument: 'NAME', help: 'The name of the sandbox.' }],
    takesCommandLine: true,
  },
  {
    name: 'logs',
    group: 'Background',
    help: 'Print what a command in the background has printed.',
    arguments: [{ name: 'NAME', isOptional: true, completes: 'sandboxes' }],
    flags: [{ name: 'follow', help: 'Continue while it runs (-f).' }, JSON_FLAG],
  },
  {
    name: 'stop',
    group: 'Background',
    help: 'Stop sandboxes in the background and remove their logs.',
    arguments: [{ name: 'NAME', isOptional: true, repeats: true, completes: 'sandboxes' }],
  },
  {
    name: 'ps',
    group: 'Background',
    help: 'List the live runs (of this user; for root of all), or those with pending changes.',
    flags: [
      { name: 'ended', help: 'List the sandboxes in the background that have ended, until they are stopped.' },
      { name: 'cow', help: 'List the runs with pending changes.' },
      { name: 'net', argument: 'NAME', help: 'Print the connections of one run (name or ID) as they happen.' },
      JSON_FLAG,
    ],
  },
  {
    name: 'allow',
    group: 'Background',
    help: 'Allow a live run more hosts (it was started with --allow-later or --ask-hosts).',
    arguments: [
      { name: 'ID', completes: 'runs' },
      { name: 'HOST', repeats: true, completes: 'refused-hosts' },
    ],
  },
  {
    name: 'kill',
    group: 'Background',
    help: 'End runs and all that they started; without ID, the last run here.',
    arguments: [{ name: 'ID', isOptional: true, repeats: true, completes: 'runs' }],
  },
  {
    name: 'homes',
    group: 'Maintain',
    help: 'List the home directories that are kept (--home NAME), or remove one of this directory.',
    flags: [JSON_FLAG],
    isActionOptional: true,
    actions: [
      {
        name: 'remove',
        help: 'Remove a home of this directory with all that is in it.',
        arguments: [{ name: 'NAME', completes: 'homes' }],
      },
    ],
  },
  { name: 'prune', group: 'Maintain', help: 'Remove what killed runners left behind.' },
  {
    name: 'images',
    group: 'Maintain',
    help: 'List the images that stand for a runtime, or fetch those that are missing.',
    flags: [{ name: 'pull', help: 'Fetch the images that are missing.' }, JSON_FLAG],
  },
  {
    name: 'audit',
    group: 'Explain',
    help: 'Check that an audit log was not changed.',
    actions: [
      {
        name: 'verify',
        help: 'Check that an audit log was not changed.',
        arguments: [{ name: 'FILE', completes: 'files' }],
      },
    ],
  },
  {
    name: 'report',
    group: 'Explain',
    help: 'Print audit logs or batch results as a page of HTML.',
    arguments: [{ name: 'FILE', repeats: true, completes: 'files' }],
  },
  {
    name: 'pool',
    group: 'Serve',
    help: 'Keep sandboxes ready, so that runs start faster.',
    actions: [
      {
        name: 'start',
        help: 'Keep sandboxes ready for runs with these options of exec.',
        flags: [
          { name: 'size', argument: 'N', help: 'How many are kept ready (4).' },
          { name: 'idle-timeout', argument: 'T', help: 'End without a run for so long, or none (15m).' },
        ],
        takesCommandLine: true,
      },
      { name: 'status', help: 'List the pools.', flags: [JSON_FLAG] },
      {
        name: 'stop',
        help: 'End the pools started in this directory.',
        flags: [{ name: 'all', help: 'End all pools of this user.' }],
      },
    ],
  },
  {
    name: 'fleet-server',
    group: 'Serve',
    help: 'Serve agents on this machine: a queue of tasks, and a page to submit, watch and cancel them.',
    flags: [
      { name: 'port', argument: 'N', help: 'Listen on 127.0.0.1:N (8930; 0: any free one).' },
      { name: 'data', argument: 'DIR', help: 'Keep tasks and files here (a temporary directory, gone at the end).' },
    ],
  },
  {
    name: 'agent',
    group: 'Serve',
    help: 'Run the tasks of a server, each in a fresh sandbox.',
    flags: [
      { name: 'server', argument: 'URL', help: 'Address of the server (SERVER_URL).' },
      { name: 'queue', argument: 'URL', help: 'A queue of BullMQ instead, such as redis://host/0?queue=NAME.' },
      {
        name: 'demo-server',
        help: 'A small server in this process instead, for trying; it prints the address of its page.',
      },
      { name: 'lease', argument: 'T', help: 'With --queue: tasks of an agent that died begin again after T (30s).' },
      { name: 'slots', argument: 'N', help: 'Tasks at once (MAX_PARALLEL_JOBS; 0: one a processor).' },
      { name: 'poll', argument: 'T', help: 'Time between questions while no task waits (5s).' },
      { name: 'grace', argument: 'T', help: 'Time that running tasks have after SIGTERM (30s).' },
    ],
    execOptions: ['policy'],
  },
  {
    name: 'batch',
    group: 'Serve',
    help: 'Run each line of JSON of a file, or of stdin (-), in a sandbox, and print a line for each.',
    arguments: [{ name: 'FILE', completes: 'files' }],
    flags: [
      { name: 'jobs', short: 'j', argument: 'N', help: 'How many at once (one a processor).' },
      { name: 'results', argument: 'FILE', help: 'Append the results to a file.' },
      { name: 'resume', help: 'Go on with that file: what has a result in it is not run again.' },
      { name: 'ordered', help: 'In the order of the input, not as they end.' },
    ],
    execOptions: ['policy'],
  },
  {
    name: 'cache',
    group: 'Maintain',
    help: 'List or remove what --cache keeps, or forget the plans of runs.',
    actions: [
      { name: 'list', help: 'List what --cache keeps, as PROJECT/NAME.' },
      {
        name: 'remove',
        help: 'Remove what --cache keeps: all of a project, or one of its caches.',
        arguments: [{ name: 'PROJECT[/NAME]', repeats: true, completes: 'caches' }],
      },
      { name: 'clear', help: 'Forget the plans that are kept to start faster.' },
    ],
  },
  {
    name: 'completion',
    group: 'Maintain',
    help: 'Print the completion of the command line for a shell.',
    arguments: [{ name: 'SHELL', choices: ['bash', 'zsh', 'fish'] }],
  },
  {
    name: 'help',
    group: 'Explain',
    help: 'Print the help of a command.',
    arguments: [
      { name: 'COMMAND', isOptional: true },
      { name: 'ACTION', isOptional: true },
    ],
  },
  { name: 'version', group: 'Explain', help: 'Print the version.' },
] as const satisfies readonly SubcommandDeclaration[]

export type SubcommandName = (typeof SUBCOMMANDS)[number]['name']

/** The declarations as the general type, which knows of all that may be left out. */
export const DECLARED: readonly SubcommandDeclaration[] = SUBCOMMANDS

/** A subcommand by its words. @throws TypeError for a name that is not declared */
export function verbNamed(name: SubcommandName, action?: string): Verb {
  const declared = DECLARED.find((one) => one.name === name)
  const named = action === undefined ? declared : declared?.actions?.find((one) => one.name === action)
  if (named === undefined) throw new TypeError(`no subcommand ${name} ${action ?? ''}`)
  return { path: action === undefined ? name : `${name} ${action}`, flags: named.flags ?? [] }
}

function argumentUsage({ name, isOptional, repeats, choices }: ArgumentDeclaration): string {
  const word = choices?.join('|') ?? `${name}${repeats ? '...' : ''}`
  return isOptional ? `[${word}]` : word
}

function flagUsage({ name, short, argument, choices }: FlagDeclaration): string {
  if (short !== undefined) return `[-${short} ${argument}]`
  if (choices !== undefined) return `[--${name}=${choices.join('|')}]`
  return argument === undefined ? `[--${name}]` : `[--${name} ${argument}]`
}

/** The part of the usage after the name. @param isShort without flags */
export function usageOf(declaration: SubcommandDeclaration, isShort = false): string {
  const { flags = [], arguments: operands = [], actions = [], isActionOptional, execOptions, name } = declaration
  const nested = actions.map((action) => `${action.name} ${usageOf(action, isShort)}`.trim()).join(' | ')
  const options = declaration.takesCommandLine || execOptions !== undefined ? ['[options]'] : []
  const command = declaration.takesCommandLine
    ? name === 'pool' || name === 'start'
      ? ['[-- COMMAND]']
      : ['-- COMMAND [ARG...]']
    : []
  const parts = [
    ...(isShort && name !== 'exec' ? [] : [...options, ...flags.map(flagUsage)]),
    ...(isShort && name !== 'exec' ? [] : command),
    ...operands.map(argumentUsage),
    ...(nested === '' ? [] : [isActionOptional ? `[${nested}]` : nested]),
  ]
  return parts.join(' ')
}

/** Whether a subcommand takes this option of exec: one that sets the policy, or `--workshop`. */
export const isTakenBy =
  ({ execOptions = [] }: SubcommandDeclaration) =>
  ({ name, sets }: { readonly name: string; readonly sets?: unknown }): boolean =>
    sets === undefined && name !== 'profile'
      ? name === 'workshop' && execOptions.includes('workshop')
      : execOptions.includes('policy')
