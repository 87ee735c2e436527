/** Names of rules that stand for what a tool of the caller is set up for; index.ts says what each reads. */
export const TOOL_NAMES = ['@npm', '@pip', '@cargo', '@go', '@apt', '@git'] as const
export type ToolName = (typeof TOOL_NAMES)[number]

/** The tool of a rule: `@git`, or `@git?` where it may be set up for nothing. */
export const toolOf = (rule: string): ToolName | undefined =>
  TOOL_NAMES.find((name) => rule === name || rule === `${name}?`)

export const isToolRule = (rule: string): boolean => toolOf(rule) !== undefined
