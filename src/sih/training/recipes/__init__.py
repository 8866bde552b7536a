"""Recipes: methods of training, each a subclass of `Recipe` in its own file here."""

import importlib
import pkgutil

from sih.base.errors import FieldError, check_choice
from sih.training.recipes.recipe import Recipe as Recipe


def all_recipes() -> list[type[Recipe]]:
    """Return the recipes that the files of this folder define."""
    modules = [
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    ]
    members = [(module.__name__, member) for module in modules for member in vars(module).values()]
    own = [
        member for name, member in members if isinstance(member, type) and member.__module__ == name
    ]
    return [member for member in own if issubclass(member, Recipe) and "name" in vars(member)]


def recipe_named(name: str, kind: str) -> type[Recipe]:
    """Return the recipe of this name for a kind of model."""
    recipes = all_recipes()
    fitting = {
        recipe.name: recipe for recipe in recipes if not recipe.kinds or kind in recipe.kinds
    }
    others = [kind for recipe in recipes if recipe.name == name for kind in recipe.kinds]
    if name not in fitting and others:
        message = (
            f"the recipe {name} is for {', '.join(others)}; a {kind} model has {', '.join(fitting)}"
        )
        raise FieldError("init", message)
    check_choice("init", name, tuple(fitting))
    return fitting[name]
