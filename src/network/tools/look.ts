/** How a tool's configuration is looked at, and what is found: data and questions, no effects. src/host/tool-hosts.ts answers. */

export interface Look {
  readonly home: string
  /** `$XDG_CONFIG_HOME` or `~/.config`. */
  readonly configHome: string
  /** The caller's directory. */
  readonly cwd: string
  /** A variable of the caller; empty text counts as none. */
  readonly variable: (name: string) => string | undefined
  /** A file that only the caller or the system writes; undefined where there is none. */
  readonly text: (path: string) => string | undefined
  /** A file of the project: its author has written it, not the caller. */
  readonly projectText: (path: string) => string | undefined
  /** Sorted; empty without such a directory. */
  readonly names: (directory: string) => readonly string[]
  /** The directories there that belong to the caller; git obeys no other repository. */
  readonly ownKind: (path: string) => 'file' | 'directory' | undefined
  /** Canonical path of a program that no command could have written; undefined where there is none. */
  readonly program: (name: string) => string | undefined
  /** Output of a program, in the root directory and without the caller's variables; undefined where it fails. */
  readonly ask: (program: string, words: readonly string[]) => Promise<string | undefined>
}

/** An address that some file or variable names. It may hold a password: only its host and port go any further. */
export interface Mention {
  readonly url: string
  /** The file, `variable NAME`, or the program that was asked. */
  readonly from: string
}

export interface Mentions {
  /** The caller's own word. */
  readonly own: readonly Mention[]
  /** The project's word, which opens nothing. */
  readonly project: readonly Mention[]
}

export type Tool = (look: Look) => Promise<Mentions> | Mentions

export const mention = (from: string, urls: readonly (string | undefined)[]): readonly Mention[] =>
  urls.flatMap((url) => (url === undefined || url === '' ? [] : [{ url, from }]))

/** The first that says anything. */
export const firstOf = (...mentions: readonly (readonly Mention[])[]): readonly Mention[] =>
  mentions.find((found) => found.length > 0) ?? []
