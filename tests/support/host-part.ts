/** A part of the program on the host (native/tools/llm-do.c), for tests that ask it without the command. */
import { execa } from 'execa'
import { type HostPart, hostCall } from '../../src/os/native-programs.ts'

/** Its command line. */
export function partWords(part: HostPart, words: readonly string[], directory?: string): readonly string[] {
  const { file, argv } = hostCall(part, words, directory)
  return [file, ...argv]
}

/** Runs it to its end; its status is the caller's to look at. */
export function runPart(part: HostPart, words: readonly string[]) {
  const { file, argv } = hostCall(part, words)
  return execa(file, argv, { reject: false })
}
