/** The program as scripts/portable.sh starts it, for tests that give node options of their own; see src/cli/call.ts. */
export function byHand(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): { readonly words: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const kept = Object.entries(env).map(([name, value]) => [`LLM_DO_KEPT_${name}`, value])
  return {
    words: words.map((word) => `=${word}`),
    env: { LLM_DO_CALL: 'argv', LLM_DO_DIRECTORY: cwd, ...Object.fromEntries(kept) },
  }
}
