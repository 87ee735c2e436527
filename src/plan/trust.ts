/**
 * The certificates that a command trusts where TLS ends on the host: the host's and the one of the run's own authority, in one file, in
 * the place of every bundle that programs look for. Pure.
 */
import { posix } from 'node:path'
import { isTerminated } from '../network/termination.ts'
import type { NetworkPolicy } from '../policy/values.ts'
import { type PathFacts, pathFact } from './mounts.ts'
import type { PlannedTrust, SystemEntry } from './plan.ts'
import { isWithin } from './well-known-paths.ts'

/** The bundle inside. Its content differs from run to run, so a plan has none of it. */
export const TRUST_FILE = '/etc/.llm-do/ca-bundle.pem'

/** Where distributions keep the bundle: Debian and Alpine, Fedora, SUSE, BSD's name, Arch. The first one that is there is this host's. */
export const TRUST_PLACES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
  '/etc/ca-certificates/extracted/tls-ca-bundle.pem',
] as const

/** Questions to the host for it. */
export const trustQuestions = (network: NetworkPolicy): readonly string[] => (isTerminated(network) ? TRUST_PLACES : [])

export const trustProblems = (network: NetworkPolicy, paths: PathFacts): readonly string[] =>
  isTerminated(network) && bundlesOf(paths).length === 0
    ? [
        `network.terminate: expected a bundle of certificates to verify servers by, got none at ${TRUST_PLACES.join(', ')} (apt-get install ca-certificates).`,
      ]
    : []

/** Undefined where TLS ends nowhere. */
export function plannedTrust(
  network: NetworkPolicy,
  paths: PathFacts,
  system: readonly SystemEntry[],
): PlannedTrust | undefined {
  const [source] = isTerminated(network) ? bundlesOf(paths) : []
  if (source === undefined) return undefined
  const places = bundlesOf(paths).flatMap((real) => insideOf(real, system))
  return { source, places: [...new Set(places)].sort() }
}

const bundlesOf = (paths: PathFacts): readonly string[] => [
  ...new Set(
    TRUST_PLACES.map((place) => pathFact(paths, place)).flatMap(({ kind, real }) => (kind === 'file' ? [real] : [])),
  ),
]

/** Where the system part of the tree shows a file of the host; a link inside leads to the same place. */
const insideOf = (real: string, system: readonly SystemEntry[]): readonly string[] =>
  system.flatMap((entry) =>
    entry.op === 'bind' && isWithin(real, entry.source)
      ? [posix.join(entry.target, posix.relative(entry.source, real))]
      : [],
  )

/** Programs that bring a bundle of their own, or take a variable for the only one: node, requests, pip, deno, OpenSSL of other builds. */
export function trustVariables(network: NetworkPolicy): Readonly<Record<string, string>> {
  if (!isTerminated(network)) return {}
  const names = ['NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'PIP_CERT', 'DENO_CERT', 'SSL_CERT_FILE']
  return Object.fromEntries(names.map((name) => [name, TRUST_FILE]))
}
