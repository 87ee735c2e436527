// The parts of the files of a release, as SPDX 2.3 in JSON: the npm packages that scripts/build.mjs has bundled, with version, checksum and
// license of package-lock.json, and the C libraries that the native programs are linked with.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { facts, root } from './facts.mjs'

const readJson = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'))

/** Debian packages of the compilers of `make release`: a static program contains parts of them. */
const LIBRARIES = [
  { name: 'musl', of: 'musl-dev', license: 'MIT' },
  { name: 'glibc', of: 'libc6-dev-arm64-cross', license: 'LGPL-2.1-or-later' },
  {
    name: 'libgcc',
    of: 'libgcc-12-dev|libgcc-14-dev|libgcc-13-dev',
    license: 'GPL-3.0-or-later WITH GCC-exception-3.1',
  },
]

function debianVersion(names) {
  for (const name of names.split('|'))
    try {
      const status = execFileSync('dpkg-query', ['--status', name], { encoding: 'utf8', stdio: 'pipe' })
      if (/^Status: .* installed$/m.test(status)) return /^Version: (.*)$/m.exec(status)[1]
    } catch {
      // Of the alternatives only one is installed.
    }
  throw new Error(`dpkg-query: expected ${names} to be installed (hint: scripts/setup release)`)
}

/** Characters that an identifier of SPDX can have. */
const idOf = (...words) => `SPDXRef-${words.join('-').replaceAll(/[^A-Za-z0-9.-]+/g, '-')}`

const common = { filesAnalyzed: false, copyrightText: 'NOASSERTION' }

function npmPackage(place, { version, license, integrity, resolved }) {
  const name = place.replace(/^.*node_modules\//, '')
  const [, algorithm = '', sum = ''] = /^(sha\d+)-(.*)$/.exec(integrity ?? '') ?? []
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return {
    SPDXID: idOf('npm', name, version),
    name,
    versionInfo: version,
    downloadLocation: resolved ?? 'NOASSERTION',
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: license ?? 'NOASSERTION',
    checksums: [{ algorithm: algorithm.toUpperCase(), checksumValue: Buffer.from(sum, 'base64').toString('hex') }],
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
    ...common,
  }
}

function bundledPackages() {
  const { packages } = readJson('package-lock.json')
  const all = readJson('build/bundled.json').map((place) => npmPackage(place, packages[place]))
  return [...new Map(all.map((one) => [one.SPDXID, one])).values()]
}

const linkedLibraries = () =>
  LIBRARIES.map(({ name, of, license }) => ({
    SPDXID: idOf('library', name),
    name,
    versionInfo: debianVersion(of),
    downloadLocation: 'NOASSERTION',
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: license,
    comment: 'Parts are linked into the native programs.',
    ...common,
  }))

const releaseFile = ({ name, sum }) => ({
  SPDXID: idOf('file', name),
  name: 'llm-do-exec',
  versionInfo: facts.version,
  packageFileName: name,
  downloadLocation: 'NOASSERTION',
  licenseConcluded: facts.license,
  licenseDeclared: facts.license,
  checksums: [{ algorithm: 'SHA256', checksumValue: sum }],
  ...common,
})

/** Native programs are in all files but the main package of npm. glibc is in those for arm64, musl in those for x64. */
function contains(file, part) {
  if (!part.SPDXID.startsWith('SPDXRef-library-')) return true
  const isNative = /arm64|x64|amd64/.test(file.packageFileName)
  return isNative && (part.name === 'libgcc' || /arm64/.test(file.packageFileName) === (part.name === 'glibc'))
}

/** @param files the files of the release with their checksums @param seconds the time of the last commit */
export function sbom(files, seconds) {
  const [own, parts] = [files.map(releaseFile), [...bundledPackages(), ...linkedLibraries()]]
  const sum = createHash('sha256')
    .update(JSON.stringify([own, parts]))
    .digest('hex')
  const relationships = own.flatMap((file) => [
    { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: file.SPDXID },
    ...parts
      .filter((part) => contains(file, part))
      .map((part) => ({
        spdxElementId: file.SPDXID,
        relationshipType: 'CONTAINS',
        relatedSpdxElement: part.SPDXID,
      })),
  ])
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `llm-do-exec-${facts.version}`,
    documentNamespace: `${facts.homepage.replace(/#.*/, '')}/spdx/${facts.version}-${sum}`,
    creationInfo: {
      created: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'),
      creators: ['Tool: llm-do-exec-packaging'],
    },
    packages: [...own, ...parts],
    relationships,
  }
  return `${JSON.stringify(document, null, 2)}\n`
}
