/**
 * Transcripts: Markdown in which every ```console block is a terminal session that is played again.
 *
 *     $ llm-do exec -- false        a command line, for bash; `> ` continues it
 *     what it printed               stdout and stderr as they come
 *     [exit 1]                      its exit status, when it is not 0
 *
 * `{{word}}` matches anything within a line, a line `...` any number of lines. Everything below one `## ` heading is
 * one test in a new directory.
 */

export interface Step {
  readonly command: string
  /** Lines; placeholders are still in them. */
  readonly expected: readonly string[]
  readonly status: number
  /** Line in the file, from 1. */
  readonly line: number
}

export interface Session {
  readonly title: string
  readonly steps: readonly Step[]
}

interface Line {
  readonly text: string
  readonly number: number
}

interface OpenStep {
  readonly command: string[]
  readonly expected: string[]
  readonly line: number
}

const STATUS = /^\[exit (\d+)\]$/

function closeStep({ command, expected, line }: OpenStep): Step {
  const status = STATUS.exec(expected.at(-1) ?? '')
  return {
    command: command.join('\n'),
    expected: status === null ? expected : expected.slice(0, -1),
    status: Number(status?.[1] ?? 0),
    line,
  }
}

function readBlock(lines: readonly Line[]): readonly Step[] {
  const steps: OpenStep[] = []
  for (const { text, number } of lines) {
    const step = steps.at(-1)
    if (text.startsWith('$ ')) steps.push({ command: [text.slice(2)], expected: [], line: number })
    else if (step === undefined)
      throw new Error(`line ${number}: a block begins with "$ command", got ${JSON.stringify(text)}`)
    else if (text.startsWith('> ') && step.expected.length === 0) step.command.push(text.slice(2))
    else step.expected.push(text)
  }
  return steps.map(closeStep)
}

/** Reads a transcript; headings without a console block are left out. */
export function parseTranscript(markdown: string): readonly Session[] {
  const sessions: { title: string; steps: Step[] }[] = [{ title: '', steps: [] }]
  let block: Line[] | undefined
  for (const [index, text] of markdown.split('\n').entries()) {
    if (block === undefined && text.startsWith('## ')) sessions.push({ title: text.slice(3), steps: [] })
    else if (block === undefined && text === '```console') block = []
    else if (block !== undefined && text === '```') {
      sessions.at(-1)?.steps.push(...readBlock(block))
      block = undefined
    } else block?.push({ text, number: index + 1 })
  }
  if (block !== undefined) throw new Error('the last console block has no end')
  return sessions.filter(({ steps }) => steps.length > 0)
}

const escapeForRegExp = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** One regular expression for a whole output. */
export function patternOf(expected: readonly string[]): RegExp {
  const lines = expected.map((line) => {
    if (line === '...') return '(?:[^\\n]*\\n)*'
    return `${line
      .split(/\{\{[^}]*\}\}/)
      .map(escapeForRegExp)
      .join('[^\\n]*')}\\n`
  })
  return new RegExp(`^${lines.join('')}$`)
}

/** Whether an output is the expected one; a last line without a line feed counts as if it had one. */
export function matches(expected: readonly string[], output: string): boolean {
  return patternOf(expected).test(output === '' || output.endsWith('\n') ? output : `${output}\n`)
}
