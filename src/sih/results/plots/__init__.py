"""How objects are drawn: a file for each form, `forms.py` which object has which."""
