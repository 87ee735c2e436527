/** An address of a tool's configuration -> the rule that allows its host and port. Pure. */
import { canonicalName, type HostRule, parseRule, printRule } from '../host-rule.ts'

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ssh: 22, git: 9418 }

/** `https://user:password@host:8443/path` -> `host:8443`; undefined for what names no host that could be reached. */
export function ruleOfUrl(text: string): string | undefined {
  // Readers of addresses disagree on what a backslash is.
  if (/[\\\s]/.test(text)) return undefined
  const { scheme = '', authority = '' } = /^(?<scheme>[a-z0-9+.-]+):\/\/(?<authority>[^/?#]*)/i.exec(text)?.groups ?? {}
  const port = PORTS[scheme.toLowerCase().replace(/^(?:sparse|mirror|git)\+/, '')]
  return port === undefined ? undefined : ruleOf(authority.slice(authority.lastIndexOf('@') + 1), port)
}

/** `[USER@]HOST:PATH` of git and ssh. */
export function ruleOfScp(text: string): string | undefined {
  const { host = '' } = /^(?:[^/@:]*@)?(?<host>\[[^\]]+\]|[^/@:]+):/.exec(text)?.groups ?? {}
  return host === '' || text.includes('://') ? undefined : ruleOf(host, 22)
}

function ruleOf(host: string, defaultPort: number): string | undefined {
  const text = `http://${host}`
  if (host === '' || !URL.canParse(text)) return undefined
  const { hostname } = new URL(text)
  if (!hostname.startsWith('[') && !/^[\d.]+$/.test(hostname) && canonicalName(hostname) === undefined) return undefined
  // URL leaves out the default port of http, so it is read from the text.
  const written = /:(\d+)$/.exec(host)?.[1]
  const rule: HostRule | undefined = parseRule(`${hostname}:${written ?? defaultPort}`)
  return rule === undefined ? undefined : printRule(rule)
}
