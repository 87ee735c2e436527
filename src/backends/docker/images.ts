/** Chooses the image of a container run when the policy names none. Data and pure functions. */

export interface Runtime {
  readonly name: string
  readonly image: string
  /** Commands that choose it when the policy names no runtime. */
  readonly commands: readonly string[]
}

/** Official images, pinned to a major version and to Debian, so that zones with glibc programs keep working inside. */
export const RUNTIMES: readonly Runtime[] = [
  { name: 'bash', image: 'debian:bookworm-slim', commands: ['bash', 'sh'] },
  { name: 'node', image: 'node:22-bookworm-slim', commands: ['node', 'npm', 'npx', 'yarn', 'pnpm', 'corepack'] },
  { name: 'python', image: 'python:3.12-slim-bookworm', commands: ['python', 'python3', 'pip', 'pip3'] },
  { name: 'cpp', image: 'gcc:14-bookworm', commands: ['gcc', 'g++', 'cc', 'c++', 'make', 'cmake'] },
  { name: 'java', image: 'eclipse-temurin:21-jdk', commands: ['java', 'javac', 'jar'] },
  { name: 'dotnet', image: 'mcr.microsoft.com/dotnet/sdk:8.0', commands: ['dotnet'] },
]

const FALLBACK = RUNTIMES[0] as Runtime

export function runtimeNamed(name: string): Runtime | undefined {
  return RUNTIMES.find((runtime) => runtime.name === name)
}

/** The runtime whose commands hold the last part of `program`; bash when none does. */
export function runtimeOfCommand(program: string): Runtime {
  const name = program.slice(program.lastIndexOf('/') + 1)
  return RUNTIMES.find(({ commands }) => commands.includes(name)) ?? FALLBACK
}

/** An image that was named wins over a runtime, a runtime over what the command looks like. */
export function imageFor(wanted: {
  readonly image?: string | undefined
  readonly runtime?: string | undefined
  readonly program: string
}): string | undefined {
  if (wanted.image !== undefined) return wanted.image
  return wanted.runtime === undefined ? runtimeOfCommand(wanted.program).image : runtimeNamed(wanted.runtime)?.image
}
