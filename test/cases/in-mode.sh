#!/bin/sh
# Stands in for srt in the cases from bug reports, to try them in modes that settings have to allow: the settings file that a
# case wrote gains "enableWeakerNestedSandbox": true, and everything else goes to srt as it is. It takes no program but the shell
# and mv, since one case has neither bash nor anything else.
#
#   SRT_CASES_BINARY   the srt binary
#   SRT_CASES_WEAKER   false: leave the settings alone
#   SRT_WITHOUT        what is taken away (docs/cli.md): procfs for mode nested, userns for mode confined
#
# The file changes where it lies, since cases look at what lies beside it, and at once, since some start several commands with
# one file. What does not begin as a JSON object stays as it is: there are cases about broken settings.
: "${SRT_CASES_BINARY:?set SRT_CASES_BINARY to the srt binary}"
settings='' before=''
for word in "$@"; do
  case $before in -s | --settings) settings=$word; break ;; esac # the words after it may be the command's
  case $word in -c | --) break ;; --settings=*) settings=${word#--settings=}; break ;; esac
  before=$word
done
if [ "${SRT_CASES_WEAKER:-true}" = true ] && [ -f "$settings" ] && [ -w "$settings" ]; then
  text=$(cat "$settings")
  case $text in
  *enableWeakerNestedSandbox*) ;;
  '{'*)
    rest=${text#?} comma=,
    rest=${rest#"${rest%%[![:space:]]*}"}
    case $rest in '}'*) comma= ;; esac
    printf '{"enableWeakerNestedSandbox":true%s%s' "$comma" "$rest" >"$settings.$$" && mv -f -- "$settings.$$" "$settings"
    ;;
  esac
fi
exec "$SRT_CASES_BINARY" "$@"
