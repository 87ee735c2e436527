// The parts of `make test-all`: `make test`, then what it leaves out, each part under 50 minutes on two cores.
//
// Every directory of tests that has `.deep.` files is a part of that name. The others are programs of their own.
import { systemFiles } from './system.mjs'

const FUZZ_MINUTES = Number(process.env.FUZZ_MINUTES ?? 2)
const SOAK_MINUTES = Number(process.env.SOAK_MINUTES ?? 10)

const roomOf = ({ file }) => file.split('/').slice(1, -1)[0] ?? 'tests'

const deepFiles = systemFiles().filter(({ isDeep }) => isDeep)
const rooms = [...new Set(deepFiles.map(roomOf))].sort()

/** @returns {Record<string, { title: string, run: (ways: object) => Promise<object[]> }>} */
export const PARTS = {
  core: { title: 'make test', run: ({ everything }) => everything() },
  ...Object.fromEntries(rooms.map((room) => [room, partOf(room)])),
  analysis: { title: 'every file of native/', run: async ({ stage }) => [await stage('analysis', ['--every'])] },
  vm: { title: 'a virtual machine', run: async ({ stage }) => [await stage('vm')] },
  mutants: { title: 'every mutant', run: async ({ stage }) => [await stage('mutants')] },
  fuzzers: {
    title: `${FUZZ_MINUTES} minutes of each fuzz target (FUZZ_MINUTES)`,
    run: async ({ stage }) => [await stage('fuzz', FUZZ_MINUTES)],
  },
  soak: {
    title: `${SOAK_MINUTES} minutes (SOAK_MINUTES)`,
    run: async ({ stage }) => [await stage('soak', SOAK_MINUTES)],
  },
}

function partOf(room) {
  return {
    title: `the rest of tests/${room}`,
    run: async ({ systemStage }) => [
      await systemStage(
        deepFiles.filter((one) => roomOf(one) === room),
        { isDeep: true },
      ),
    ],
  }
}
