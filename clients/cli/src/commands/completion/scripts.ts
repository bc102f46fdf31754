import type { CompletionEntry } from './completion-table.ts';

/** The shells that have a completion script. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Returns the completion script of a shell. */
export function scriptOf(shell: Shell, table: readonly CompletionEntry[]): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](table);
}

/**
 * Returns the shell functions that bash and zsh share: one prints the candidates after a command or option, the other
 * tests whether a word is a command.
 */
function tableFunction(table: readonly CompletionEntry[]): string[] {
  return [
    '_writ_words() {',
    '  case "$1" in',
    ...table.flatMap(({ path, words, values }) => [
      `    ${quoted(path)}) printf '%s' ${quoted(words.map(({ word }) => word).join(' '))} ;;`,
      ...values.map(
        ({ option, choices }) =>
          `    ${quoted(`${path} ${option}`)}) printf '%s' ${quoted(choices.join(' '))} ;;`,
      ),
    ]),
    '  esac',
    '}',
    '# Returns 0 if the argument is the full path of a command.',
    '_writ_is_command() {',
    '  case "$1" in',
    `    ${table.map(({ path }) => quoted(path)).join(' | ')}) return 0 ;;`,
    '  esac',
    '  return 1',
    '}',
  ];
}

function bashScript(table: readonly CompletionEntry[]): string {
  return `# bash completion of writ. Load it with: source <(writ completion bash)
${tableFunction(table).join('\n')}
_writ() {
  local path=writ index words
  for ((index = 1; index < COMP_CWORD; index++)); do
    if _writ_is_command "$path \${COMP_WORDS[index]}"; then path="$path \${COMP_WORDS[index]}"; fi
  done
  words="$(_writ_words "$path \${COMP_WORDS[COMP_CWORD - 1]}")"
  if [[ -z $words ]]; then words="$(_writ_words "$path")"; fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _writ writ`;
}

function zshScript(table: readonly CompletionEntry[]): string {
  return `#compdef writ
# zsh completion of writ. Load it with: source <(writ completion zsh)
${tableFunction(table).join('\n')}
_writ() {
  local command_path=writ found
  integer index
  for ((index = 2; index < CURRENT; index++)); do
    if _writ_is_command "$command_path $words[index]"; then
      command_path="$command_path $words[index]"
    fi
  done
  found="$(_writ_words "$command_path $words[CURRENT - 1]")"
  if [[ -z $found ]]; then found="$(_writ_words "$command_path")"; fi
  compadd -- \${=found}
  [[ $words[CURRENT] == -* ]] || _files
}
compdef _writ writ`;
}

function fishScript(table: readonly CompletionEntry[]): string {
  const paths = table.map(({ path }) => fishQuoted(path)).join(' ');
  return [
    '# fish completion of writ. Load it with: writ completion fish | source',
    '# Prints the full path of the command before the cursor.',
    'function __writ_path',
    '  set -l path writ',
    '  for word in (commandline -opc)[2..-1]',
    `    if contains -- "$path $word" ${paths}`,
    '      set path "$path $word"',
    '    end',
    '  end',
    '  echo $path',
    'end',
    ...table.flatMap(({ path, words, values }) => {
      const at = `complete -c writ -n ${fishQuoted(`test (__writ_path) = ${fishQuoted(path)}`)}`;
      const choicesOf = new Map(values.map(({ option, choices }) => [option, choices]));
      return words.map(({ word, description }) => {
        const about = description === '' ? '' : ` -d ${fishQuoted(description)}`;
        const choices = choicesOf.get(word);
        const valueFlags = choices === undefined ? '' : ` -x -a ${fishQuoted(choices.join(' '))}`;
        if (word.startsWith('--')) return `${at} -l ${word.slice(2)}${valueFlags}${about}`;
        if (word.startsWith('-')) return `${at} -s ${word.slice(1)}${valueFlags}${about}`;
        return `${at} -a ${fishQuoted(word)}${about}`;
      });
    }),
  ].join('\n');
}

/** A text in single quotes, for bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A text in single quotes, for fish. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', String.raw`\\`).replaceAll("'", String.raw`\'`)}'`;
}
