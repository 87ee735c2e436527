/** Lines of the many kinds of configuration that have sections of `key = value`. Pure. */

export interface Setting {
  /** Empty before the first section. */
  readonly section: string
  readonly key: string
  readonly value: string
}

interface Dialect {
  /** Between key and value. */
  readonly separator: RegExp
  /** An indented line continues the value before it. */
  readonly continues: boolean
}

const COMMENT = /^\s*(?:[#;]|$)/
const SECTION = /^\s*\[(.*)\]\s*(?:[#;].*)?$/

export function settingsOf(text: string, { separator, continues }: Dialect): readonly Setting[] {
  const settings: Setting[] = []
  let section = ''
  for (const line of text.split(/\r?\n/).filter((line) => !COMMENT.test(line))) {
    const head = SECTION.exec(line)?.[1]
    const last = settings.at(-1)
    if (head !== undefined) section = head.trim()
    else if (continues && /^\s/.test(line) && last?.section === section)
      settings.splice(-1, 1, { ...last, value: `${last.value} ${line.trim()}` })
    else settings.push({ section, ...split(line, separator) })
  }
  return settings
}

function split(line: string, separator: RegExp): Pick<Setting, 'key' | 'value'> {
  const { index = line.length, 0: found = '' } = separator.exec(line) ?? {}
  return { key: line.slice(0, index).trim(), value: line.slice(index + found.length).trim() }
}

/** Without the quotes around it. */
export const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value
