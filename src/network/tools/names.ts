/** Names of rules that stand for what a tool of the caller is set up for; index.ts says what each reads. */
export const TOOL_NAMES = ['@npm', '@pip', '@cargo', '@go', '@apt', '@git'] as const
export type ToolName = (typeof TOOL_NAMES)[number]

export const isToolName = (text: string): text is ToolName => TOOL_NAMES.some((name) => name === text)
