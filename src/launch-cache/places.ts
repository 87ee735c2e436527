/**
 * Directories of launch files, in the order in which native/client/main.c looks: below the cache directory, and for a caller without a home
 * next to the secret that seals them. Edge: looks whose these directories are.
 */
import { join } from 'node:path'
import { usableCache } from '../host/boot-cache.ts'
import { secretDirectory } from '../host/own-directory.ts'

export interface CacheOwner {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly uid: number
}

export function launchPlaces({ env, uid }: CacheOwner): readonly string[] {
  const places = [usableCache(env, uid), secretDirectory(env, uid)]
  return places.flatMap((place) => (place === undefined ? [] : [join(place, 'launch')]))
}
