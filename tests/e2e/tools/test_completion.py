# Completion and manual pages, as shells and man read them: bash, zsh and fish where they are, against what --help says.
from harness import *

DOCUMENTS = os.path.join(BUILD, 'cli', 'documents')
VERBS = re.findall(r'^GT_VERB\((\w+),', open(os.path.join(SOURCE, 'cli', 'list.def'), encoding='utf-8').read(), re.M)

# The function as bash calls it; words are split at '=' as it does.
BASH = r'''
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() { :; }
_gputrace; printf '%s\n' "${COMPREPLY[@]}"
'''

# A shell on a terminal, whose compadd says what it was given.
ZSH = r'''
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= ; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word"
zpty -w shell 'compadd() { local -a hits; if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi; builtin compadd -A hits "$@"; [[ -z $hits ]] || print -rl -- "HIT "$^hits; return $(( ${#hits} == 0 )) }; null-line() { exit }; zle -N null-line; bindkey "^M" null-line; bindkey "^J" null-line; print READY'
while zpty -r shell line; do [[ $line == *READY* && $line != *print* ]] && break; done
zpty -w -n shell "$2"$'\t'$'\n'
while zpty -r shell line; do print -r -- "$line"; done
'''


def document(name):
    path = os.path.join(DOCUMENTS, name)
    if not os.path.exists(path):
        skip(f'not built: cli/documents/{name}')
    return path


def shell(name):
    if not shutil.which(name):
        skip(f'no {name} here')
    return name


def lines(command, **more):
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **more).stdout.decode(errors='replace').replace('\r', '').split('\n')


def by_bash(*words):
    split = []
    for word in words:
        at = word.find('=')
        split += [word] if at < 0 else [word[:at], '=', word[at + 1:]] if word[at + 1:] else [word[:at], '=']
    return {line for line in lines(['bash', '-c', BASH, 'bash', document('gputrace'), 'gputrace', *split]) if line}


def by_fish(line):
    found = lines([shell('fish'), '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', document('gputrace.fish'), line])
    return {word.split('\t')[0] for word in found if word}


def by_zsh(line):
    found = lines([shell('zsh'), '-f', '-c', ZSH, 'zsh', os.path.dirname(document('_gputrace')), line])
    return {word.split('HIT ')[1].strip() for word in found if 'HIT ' in word}


def options_of(verb):
    """As --help lists them."""
    said = subprocess.run([places.gputrace, verb, '--help'], capture_output=True, check=True, timeout=60).stdout.decode()
    return set(re.findall(r'(?<![\w-])(--[a-z-]+|-\w)(?=[ ,\[]|$)', '\n'.join(re.findall(r'^  (-.*?)(?:  |$)', said, re.M))))


def test_help_names_an_option_whose_value_may_be_left_out():
    check('--simgpu' in options_of('run'), 'as it is typed', options_of('run'))


def sections():
    trace = os.path.join(SOURCE, 'tests', 'corpus', 'golden', 'train')
    said = subprocess.run([places.gputrace, 'report', trace, '--section', 'no-such-section'], capture_output=True, timeout=60, check=False)
    check_equal(said.returncode, 2, 'an unknown section')
    helped = subprocess.run([places.gputrace, 'report', '--help'], capture_output=True, check=True, timeout=60).stdout.decode()
    return set(re.search(r'sections, by comma:([a-z\s-]+?)\n\s+--', helped)[1].split())


def check_shell(complete):
    check(set(VERBS) <= complete(''), 'all verbs', complete(''))
    check_equal(complete('report --format '), {'text', 'json', 'csv', 'html'}, 'formats')
    check_equal({word.split('=')[-1] for word in complete('report --format=j')}, {'json'}, 'a format behind =')
    check_equal({word.split(',')[-1].split('=')[-1] for word in complete('report --section kernels,memory')}, {'memory', 'memory-timeline', 'memory-peak', 'memory-spans'}, 'a second section')
    check_equal(complete('run --capture pro'), {'profiler-api'}, 'of run')
    check('bash' in complete('run -- bas') or 'bash' in complete('run bas'), 'a command behind run', complete('run -- bas'))
    for verb in VERBS:
        missing = {word for word in options_of(verb) if word.startswith('--')} - complete(f'{verb} --')
        check(not missing, f'options of {verb}', missing)


def test_bash():
    check_shell(lambda line: by_bash(*line.split(' ')))
    check_equal(by_bash('report', '--section', ''), sections(), 'sections')
    check_equal(by_bash('run', '--simgpu='), {'auto', '12', '13'}, 'a value that may be left out')
    check('--version' in by_bash('--v'), 'what stands before the verb')


def test_fish():
    shell('fish')
    check_shell(lambda line: by_fish('gputrace ' + line))


def test_zsh():
    shell('zsh')
    check_shell(lambda line: by_zsh('gputrace ' + line))


def test_manual_pages():
    for verb in ['', *VERBS]:
        name = 'gputrace' + (verb and '-' + verb) + '.1'
        page = document(name)
        if shutil.which('mandoc'):
            said = [line for line in lines(['mandoc', '-T', 'lint', '-W', 'warning', page]) if line and 'missing date' not in line]
            check_equal(said, [], f'{name}: what mandoc has against it')
        if not verb:
            continue
        text = open(page, encoding='utf-8').read().replace('\\-', '-').replace('\\fB', '').replace('\\fR', '')
        headings = ' '.join(text.split('.TP\n')[1:])
        missing = {option for option in options_of(verb) if option not in headings}
        check(not missing, f'{name}: options', missing)
    shown = subprocess.run(['mandoc', '-T', 'utf8', document('gputrace.1')] if shutil.which('mandoc') else ['cat', document('gputrace.1')], capture_output=True, check=True, timeout=60)
    check(b'GPUTRACE_OUTPUT' in re.sub(b'.\x08', b'', shown.stdout), 'the variables', shown.stdout[-500:])


main()
