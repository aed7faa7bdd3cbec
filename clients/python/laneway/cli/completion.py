"""`laneway completion`: makes a shell complete commands and options."""

import os
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_inspect_parameters

_VARIABLE = "_LANEWAY_COMPLETE"
"""What typer reads: with it the command answers with completions instead of doing its work."""


class Shell(StrEnum):
    """The shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {
    Shell.BASH: """\
_laneway_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _LANEWAY_COMPLETE=complete_bash "$1" 2>/dev/null))
}
complete -o default -F _laneway_completion laneway
""",
    Shell.ZSH: """\
#compdef laneway
_laneway_completion() {
    eval $(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _LANEWAY_COMPLETE=complete_zsh "${words[1]}" 2>/dev/null)
}
if [[ ${funcstack[1]} == _laneway ]]; then
    _laneway_completion
else
    compdef _laneway_completion laneway
fi
""",
    Shell.FISH: """\
function __laneway_complete
    env _LANEWAY_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] _TYPER_COMPLETE_ARGS=(commandline -cp) \\
        laneway 2>/dev/null
end
complete --command laneway --no-files \\
    --arguments "(__laneway_complete get-args)" --condition "__laneway_complete is-args"
""",
}


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print the script that makes a shell complete the commands and options of laneway.

    Examples:
      echo 'eval "$(laneway completion bash)"' >> ~/.bashrc
      echo 'eval "$(laneway completion zsh)"' >> ~/.zshrc        (after compinit)
      laneway completion fish > ~/.config/fish/completions/laneway.fish
    """
    print(_SCRIPTS[shell], end="")


def answer_completions() -> None:
    """Have typer answer in the way of the scripts above, if one of them asks."""
    if _VARIABLE in os.environ:
        get_completion_inspect_parameters()  # what it returns is for options that laneway has not
