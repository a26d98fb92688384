"""python -m gputrace run [OPTIONS] X.py [ARGUMENTS]: `gputrace run [OPTIONS] -- <this python> X.py [ARGUMENTS]`. Every other verb is the
program's own."""
import os
import sys

from .reader import Error, program

WITH_VALUE = {'-o', '--output', '-d', '--duration', '--delay', '--capture', '--collect', '--color'}


def words_of(arguments):
    if not arguments or arguments[0] != 'run' or '--help' in arguments or '-h' in arguments:
        return arguments
    at = 1
    while at < len(arguments) and arguments[at].startswith('-') and arguments[at] not in ('-m', '-c', '--'):
        at += 2 if arguments[at] in WITH_VALUE else 1
    if at >= len(arguments) or arguments[at] == '--':
        return arguments
    return [*arguments[:at], '--', sys.executable, *arguments[at:]]


def main():
    try:
        path = program()
    except Error as error:
        sys.exit(f'gputrace: error: {error}')
    os.execv(path, [path, *words_of(sys.argv[1:])])


main()
