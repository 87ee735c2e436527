/**
 * Pages of instructions, to be followed: what stands below one `## ` heading.
 *
 *     `NAME`:          a fenced block below such a line is that file; `~/NAME` is below the home directory
 *     ```sh            any other block of sh is run, in this order
 */

export interface Instructions {
  readonly title: string
  /** Name -> text. */
  readonly files: Readonly<Record<string, string>>
  /** For bash; empty where nothing is run. */
  readonly script: string
  /** All other blocks. */
  readonly shown: readonly string[]
}

const BLOCK = /(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$/gms

function readSection(section: string): Instructions {
  const blocks = [...section.matchAll(BLOCK)].map(([, name, language, text = '']) => ({ name, language, text }))
  const textsOf = (wanted: boolean) =>
    blocks.flatMap(({ name, language, text }) => (name === undefined && (language === 'sh') === wanted ? [text] : []))
  return {
    title: section.slice(0, section.indexOf('\n')),
    files: Object.fromEntries(blocks.flatMap(({ name, text }) => (name === undefined ? [] : [[name, text]]))),
    script: textsOf(true).join(''),
    shown: textsOf(false),
  }
}

export const readInstructions = (markdown: string): readonly Instructions[] =>
  markdown.split(/^## /m).slice(1).map(readSection)
