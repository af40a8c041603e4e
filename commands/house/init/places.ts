import { accessSync, constants } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PROGRAM_NAME } from '../../../kernel/assets.ts'
import { openConfig } from '../../../kernel/config.ts'
import { messageOf } from '../../../kernel/log.ts'
import type { ConfiguredTools } from '../../frame/command.ts'
import { OTHER_NAMES, VARIABLES, type ConfigSource } from '../../frame/configuration.ts'
import { flagsOf } from './answers.ts'
import { readSettings, writeSettings, type Settings } from './env-file.ts'
import { environmentOfUnit, readUnitSettings, unitPlaces, writeUnitSettings } from './install.ts'

/** Where `init` writes settings, and what the server will have that reads them there. */
export interface SettingsPlace {
  file: string
  /** Throws before all questions are answered for nothing. */
  refuseUnwritable: () => void
  /** What is set already, in the file or outside it. */
  configuration: () => ConfigSource
  read: () => Settings
  write: (settings: Settings) => void
  /** Who may read the secrets. */
  secrecy: string
  environment: ConfiguredTools['environment']
  /** What starts the server. */
  next: string
}

/** A file for a server that is started by hand. */
export function settingsFile(
  named: string | undefined,
  { config, environment }: ConfiguredTools,
): SettingsPlace {
  const file = resolve(named ?? 'gatehouse.env')
  return {
    file,
    refuseUnwritable: () => refuseUnwritable(dirname(file)),
    configuration: () => config,
    read: () => readSettings(file),
    write: (settings) => writeSettings(file, settings),
    secrecy: 'which its owner alone may read',
    environment,
    next: `${PROGRAM_NAME} serve --env-file ${shellWord(file)}`,
  }
}

/** The settings of the systemd unit; below `DESTDIR`, if that is set. */
export function settingsOfUnit(tools: ConfiguredTools): SettingsPlace {
  const { DESTDIR: root, PATH } = tools.environment
  const places = unitPlaces(root)
  return {
    file: places.settings,
    refuseUnwritable: () => {
      if (root === undefined) refuseUnlessRoot()
    },
    configuration: () => configurationOfUnit(tools, places.state),
    read: () => readUnitSettings(root),
    write: (settings) => writeUnitSettings(settings, root),
    secrecy: `and secrets in ${places.credentials}, which root alone may read`,
    environment: { PATH, ...environmentOfUnit(places) },
    // A service that runs already reads its secrets when it starts.
    next: 'systemctl enable gatehouse.service && systemctl restart gatehouse.service',
  }
}

function refuseUnwritable(folder: string) {
  try {
    accessSync(folder, constants.W_OK)
  } catch (error) {
    throw new Error(`no file can be made in ${folder} (${messageOf(error)}): name one by --file`)
  }
}

function refuseUnlessRoot() {
  if (process.getuid?.() === 0) return
  throw new Error('only root can write the settings of the unit: run it with sudo')
}

/** The unit does not have the variables of this shell. */
function configurationOfUnit({ config, output }: ConfiguredTools, state: string) {
  const set = [...config.origins].filter(([, { place }]) => place === 'environment')
  const names = set.map(([name]) => name).join(', ')
  if (names !== '') output.err(`Not used, because the unit does not have it: ${names}`)
  const environment = { STATE_DIRECTORY: state }
  const options = { environment, otherNames: OTHER_NAMES, collects: true }
  return openConfig(VARIABLES, { ...options, flags: flagsOf(config) })
}

/** A word that a shell reads as this text. */
function shellWord(text: string) {
  return /^[\w@%+:,./=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
